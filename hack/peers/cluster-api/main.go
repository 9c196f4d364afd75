// Cluster API's own MachineHealthCheck and MachineSet controllers, and nothing else of it: what ironfence meets in a management
// cluster, for the end-to-end tests. No webhooks, so the API server is given one version of each kind.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	name = "ironfence-peer"
	// How often everything is looked at without cause, as upstream has it.
	syncPeriod = 10 * time.Minute
	// Requests to a workload cluster, as upstream has them.
	queriesPerSecond = 20
	burst            = 30
)

func main() {
	// The flag --kubeconfig is controller-runtime's.
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  setup.ManagerCacheOptions(scheme, name, "", syncPeriod),
		Client:                 setup.ManagerClientOptions(),
	})
	if err != nil {
		return err
	}
	if err := index.AddDefaultIndexes(ctx, manager); err != nil {
		return err
	}
	secrets, err := setup.CreateSecretCachingClient(manager)
	if err != nil {
		return err
	}
	options := controller.Options{MaxConcurrentReconciles: 4}
	clusters, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: secrets,
		Cache:        setup.ClusterCacheCacheOptions(),
		Client:       setup.ClusterCacheClientOptions(name, queriesPerSecond, burst),
	}, options)
	if err != nil {
		return err
	}
	healthChecks := machinehealthcheck.Reconciler{Client: manager.GetClient(), ClusterCache: clusters}
	if err := healthChecks.SetupWithManager(ctx, manager, options); err != nil {
		return err
	}
	machineSets := machineset.Reconciler{
		Client: manager.GetClient(), APIReader: manager.GetAPIReader(), ClusterCache: clusters,
	}
	if err := machineSets.SetupWithManager(ctx, manager, options); err != nil {
		return err
	}
	return manager.Start(ctx)
}
