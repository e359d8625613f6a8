package tags

import corev1 "k8s.io/api/core/v1"

func (c *controller) platform(pod *corev1.Pod) { c.recorder.Event(pod, "Normal", "Created", "a") }
