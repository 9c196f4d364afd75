# The image of the bundle: docker build -f deploy/olm/bundle.Dockerfile -t REGISTRY/ironfence-bundle:VERSION deploy/olm
FROM scratch
LABEL operators.operatorframework.io.bundle.mediatype.v1=registry+v1
LABEL operators.operatorframework.io.bundle.manifests.v1=manifests/
LABEL operators.operatorframework.io.bundle.metadata.v1=metadata/
LABEL operators.operatorframework.io.bundle.package.v1=ironfence
LABEL operators.operatorframework.io.bundle.channels.v1=candidate
LABEL operators.operatorframework.io.bundle.channel.default.v1=candidate
COPY manifests /manifests/
COPY metadata /metadata/
