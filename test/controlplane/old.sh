#!/bin/sh
# Compiles the program with an older version of Kubernetes:
#
#	test/controlplane/old.sh v1.19.16 bin/servers/v1.19.16
#
# The module in the directory copies the requirements of Kubernetes.
set -eu
version=$1 dir=$2
sources=$(cd "$(dirname "$0")" && pwd)
: "${GO:=go}"
mkdir -p "$dir"
cd "$dir"
kubernetes=$($GO mod download -json "k8s.io/kubernetes@$version" | awk -F '"' '$2 == "Dir" { print $4 }')

# The staging modules have versions of their own. vbom.ml has moved. Older versions of
# reflect2 and json-iterator do not work with this Go.
sed -e 's|^module .*|module controlplane|' -e 's|^go .*|go 1.26.0|' -e '/^godebug/d' -e '/reflect2 =>/d' -e '/json-iterator.go =>/d' \
	-e "s|=> \./staging/src/\(k8s.io/.*\)|=> \1 v0.${version#v1.}|" -e 's|=> vbom.ml/util|=> github.com/fvbommel/util|' \
	"$kubernetes/go.mod" >go.mod
cat "$kubernetes/go.sum" >go.sum
$GO mod edit -require="k8s.io/kubernetes@$version" -require=github.com/modern-go/reflect2@v1.0.2 -require=github.com/json-iterator/go@v1.1.12
export GOFLAGS="${GOFLAGS-} -mod=mod" CGO_ENABLED=0

cp "$sources"/*.go .
rm -f ./*_test.go
replace() { # text by text in Go files
	from=$1 to=$2
	shift 2
	for file in "$@"; do
		sed "s|$from|$to|" "$file" >tmp
		mv tmp "$file"
	done
}
if ! grep -q go.etcd.io/etcd/server/v3 go.mod; then # etcd was one module before 3.5
	replace etcd/server/v3/embed etcd/embed etcd*.go
fi

# Older modules lack the OpenAPI definitions, which a release generates.
if [ ! -f "$kubernetes/pkg/generated/openapi/zz_generated.openapi.go" ]; then
	mkdir -p app openapi
	$GO run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20250910181357-589584f1c912 \
		--output-dir openapi --output-pkg controlplane/openapi --go-header-file /dev/null --report-filename /dev/null \
		$($GO list k8s.io/api/... | grep -v roundtrip) \
		k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/version \
		k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/apis/meta/v1beta1 \
		k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1 \
		k8s.io/kube-aggregator/pkg/apis/apiregistration/v1 k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1
	if ! [ -d "$($GO list -m -f '{{.Dir}}' k8s.io/kube-openapi)/pkg/validation/spec" ]; then
		replace k8s.io/kube-openapi/pkg/validation/spec github.com/go-openapi/spec openapi/*.go
	fi
	for file in "$kubernetes"/cmd/kube-apiserver/app/*.go; do
		cat "$file" >"app/$(basename "$file")"
	done
	rm -f app/*_test.go
	replace k8s.io/kubernetes/pkg/generated/openapi controlplane/openapi app/*.go
	replace k8s.io/kubernetes/cmd/kube-apiserver/app controlplane/app start_old.go
fi

# Without the cloud providers. Old versions have two variables for their version.
version="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"
$GO build -v -tags oldserver,providerless -ldflags "-s -w $version" -o controlplane .
