#!/usr/bin/env bash
# Builds kube-apiserver and kube-controller-manager from Debian's source package, and fetches etcd, into FOLDER. Takes about 6 minutes and
# 3 GB below /tmp on two cores. Requires Debian 12 and root, which installs the build dependencies.
#
# Usage: build-server.sh FOLDER
set -euo pipefail
folder=$1
mkdir -p "$folder"
export DEBIAN_FRONTEND=noninteractive

apt-get update -qq
apt-get install -y -qq --no-install-recommends golang-go dpkg-dev make rsync curl \
  golang-github-modern-go-reflect2-dev golang-github-json-iterator-go-dev >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# The package would start a server.
apt-get download -qq etcd-server
dpkg-deb --extract etcd-server_*.deb etcd
install etcd/usr/bin/etcd "$folder/etcd"

# The sources of the binary packages, in lists of their own: the machine's are not changed.
mkdir lists
sed 's/^Types: .*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > debian.sources
own=(-o Dir::Etc::sourcelist="$work/debian.sources" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists")
apt-get "${own[@]}" update -qq
apt-get "${own[@]}" source -qq --download-only kubernetes
export GOPATH="$work/go" GO111MODULE=off GOFLAGS= KUBE_GIT_COMMIT=debian KUBE_GIT_TREE_STATE=clean
KUBE_GIT_VERSION=$(ls kubernetes_*.dsc | sed -E 's/.*really([0-9.]+)-.*/v\1/')
export KUBE_GIT_VERSION
mkdir -p "$GOPATH/src/k8s.io"
dpkg-source --no-check --extract kubernetes_*.dsc "$GOPATH/src/k8s.io/kubernetes" >/dev/null
cd "$GOPATH/src/k8s.io/kubernetes"
# Its copies of these libraries read maps of the runtime in a way that crashes since Go 1.18.
for library in modern-go/reflect2 json-iterator/go; do
  rm -f "vendor/github.com/$library"/*.go "vendor/github.com/$library"/*.s
  cp "/usr/share/gocode/src/github.com/$library"/*.go "vendor/github.com/$library"
  cp "/usr/share/gocode/src/github.com/$library"/*.s "vendor/github.com/$library" 2>/dev/null || true
  rm -f "vendor/github.com/$library"/*_test.go
done
make WHAT="cmd/kube-apiserver cmd/kube-controller-manager"
install _output/bin/kube-apiserver _output/bin/kube-controller-manager "$folder"
