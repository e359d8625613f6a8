module example.com/testdata

go 1.26.0

require (
	github.com/eventseries/eventseries v0.0.0
	k8s.io/api v0.0.0
	k8s.io/apimachinery v0.0.0
	k8s.io/client-go v0.0.0
)

replace (
	github.com/eventseries/eventseries => ./project
	k8s.io/api => ./k8s-api
	k8s.io/apimachinery => ./apimachinery
	k8s.io/client-go => ./client-go
)
