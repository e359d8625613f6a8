module example.com/vet

go 1.26.0

require (
	k8s.io/api v0.0.0
	k8s.io/apimachinery v0.0.0
	k8s.io/client-go v0.0.0
)

replace (
	k8s.io/api => ./k8s-api
	k8s.io/apimachinery => ./apimachinery
	k8s.io/client-go => ./client-go
)
