// Validates a bundle of the Operator Lifecycle Manager as `operator-sdk bundle validate` does, without a cluster and an image.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: olm FOLDER")
		os.Exit(2)
	}
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects := bundle.ObjectsToValidate()
	validators := append(interfaces.Validators{validation.GoodPracticesValidator}, validation.DefaultBundleValidators...)
	failed := false
	for _, result := range validators.Validate(append(objects, bundle)...) {
		for _, found := range append(append([]errors.Error{}, result.Errors...), result.Warnings...) {
			fmt.Println(found.Error())
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
