package imports

import rec "k8s.io/client-go/tools/record"

var global rec.EventRecorder = rec.NewFakeRecorder(1)
