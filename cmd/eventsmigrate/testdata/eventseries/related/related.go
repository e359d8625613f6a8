// Package related contains messages that name other objects.
package related

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

type controller struct {
	record.EventRecorder
	client kubernetes.Interface
}

func (c *controller) found(cronJob *batchv1.CronJob, job *batchv1.Job, pods []corev1.Pod) {
	c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s", job.Name)
	c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s/%s", job.GetNamespace(), job.GetName())
	c.Event(cronJob, "Normal", "SuccessfulDelete", fmt.Sprintf("deleted job %s of %s", job.ObjectMeta.Name, cronJob.Name))
	if job != nil {
		c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s", klog.KObj(job))
	}
	for _, pod := range pods {
		c.Eventf(job, "Normal", "SuccessfulDelete", "deleted pod %s", pod.Name)
	}
	message := fmt.Sprintf("started job %s", job.Name)
	c.Event(cronJob, "Normal", "Started", message)
}

func (c *controller) notFound(ctx context.Context, cronJob *batchv1.CronJob, job, other *batchv1.Job, volume corev1.Volume) {
	copied := cronJob.DeepCopy()
	c.Eventf(cronJob, "Normal", "Updated", "an alias %s", copied.Name)
	c.Eventf(cronJob, "Normal", "Updated", "two jobs %s and %s", job.Name, other.Name)
	c.Eventf(cronJob, "Normal", "Updated", "not an object %s", volume.Name)
	c.Eventf(cronJob, "Normal", "Updated", "itself %s", cronJob.Name)
	c.Eventf(cronJob, "Normal", "Updated", "maybe nil %s", klog.KObj(job))
	ref := &corev1.ObjectReference{Kind: "Job", Name: job.Name}
	c.Eventf(ref, "Normal", "Updated", "a reference to %s", job.Name)
	created, err := c.client.BatchV1().Jobs("a").Create(ctx, job, metav1.CreateOptions{})
	if err != nil {
		c.Eventf(cronJob, "Warning", "FailedCreate", "empty after the error %s: %v", created.Name, err)
		return
	}
	c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s", created.Name)
}

func (c *controller) failed(ctx context.Context, cronJob *batchv1.CronJob, job batchv1.Job) error {
	_, err := c.client.BatchV1().Jobs("a").Create(ctx, &job, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		err = nil
	case err != nil:
		c.Eventf(cronJob, "Warning", "FailedCreate", "does not exist %s: %v", job.Name, err)
		return err
	}
	got, err := c.client.BatchV1().Jobs("a").Get(ctx, "b", metav1.GetOptions{})
	c.Eventf(cronJob, "Warning", "FailedGet", "empty with the error %s: %v", got.Name, err)
	if err == nil {
		c.Eventf(cronJob, "Normal", "Got", "without an error %s", got.Name)
	} else {
		c.Eventf(cronJob, "Warning", "FailedGet", "empty after the error %s", got.Name)
	}
	var pod *corev1.Pod
	if pod == nil {
		c.Eventf(cronJob, "Warning", "Got", "nil %s", pod.GetName())
	}
	return nil
}

func (c *controller) computed(service *corev1.Service) {
	//nolint:staticcheck // the controller for Endpoints still has them
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service.Name}}
	c.Eventf(endpoints, "Warning", "FailedCreate", "another kind %s", service.Name)
}

// The API server accepts the related object, but the Event is in the namespace default.
func clusterScoped(recorder record.EventRecorder, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	recorder.Eventf(volume, "Warning", "Updated", "claim %s", claim.Name)
}

func update(recorder record.EventRecorder, oldPod, newPod *corev1.Pod, owner runtime.Object) {
	recorder.Eventf(newPod, "Normal", "Updated", "was %s", oldPod.Name)
	recorder.Eventf(owner, "Normal", "Updated", "pod %s", newPod.Name)
}

// Clients return what they create, with its UID, and do not change their argument.
func (c *controller) created(ctx context.Context, cronJob *batchv1.CronJob, secret *corev1.Secret) {
	discarded := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := c.client.BatchV1().Jobs("a").Create(ctx, discarded, metav1.CreateOptions{}); err != nil {
		return
	}
	c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s", discarded.Name)

	wanted := newJob("b")
	stored, err := c.client.BatchV1().Jobs("a").Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return
	}
	c.Eventf(cronJob, "Normal", "SuccessfulCreate", "created job %s", wanted.Name)
	_ = stored

	expected := newJob("c")
	job, err := c.client.BatchV1().Jobs("a").Get(ctx, expected.Name, metav1.GetOptions{})
	if err != nil {
		c.Eventf(cronJob, "Warning", "FailedGet", "no job %s", expected.Name)
		return
	}
	c.Eventf(cronJob, "Normal", "JobStarted", "found job %s", expected.Name)
	_ = job

	built := newJob("d")
	c.Eventf(cronJob, "Normal", "JobStarted", "planned job %s", built.Name)

	changed := newJob("e")
	if err := c.create(ctx, changed); err == nil {
		c.Eventf(cronJob, "Normal", "JobStarted", "created job %s", changed.Name)
	}
	c.Event(cronJob, "Normal", "SecretUpdated", "updated "+secret.Name)
	c.Eventf(cronJob, "Normal", "SecretUpdated", "updated "+secret.Name+" in %s", secret.Namespace)
	text := "updated " + secret.Name
	c.Event(cronJob, "Normal", "SecretUpdated", text)
}

func newJob(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// create changes the job, as the client of controller-runtime does.
func (c *controller) create(context.Context, *batchv1.Job) error { return nil }

// kinds has two jobs: the inner one is what the reason means.
func (c *controller) kinds(cronJob *batchv1.CronJob, active *batchv1.Job, done []*batchv1.Job) {
	for _, old := range done {
		c.Event(cronJob, "Normal", "JobDeleted", "removed what the history limit does not keep")
		_ = old
	}
	_ = active
}

// refused names a claim that the API server does not have.
func (c *controller) refused(volume *corev1.PersistentVolume) {
	wanted := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c.Eventf(volume, "Warning", "ClaimCreationFailed", "no claim %s", wanted.Name)
}
