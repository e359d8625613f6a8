package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// training is the namespace of the story, and kubeflow that of mpi-operator.
	training, kubeflow = "training", "kubeflow"
	// mpiJob is the template of an MPIJob.
	mpiJob = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {namespace: training, name: NAME}
spec:
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: app, image: "example.com/app:1"}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: app, image: "example.com/app:1"}]}}}
`
	// foreignConfigMap has the name that the MPIJob "taken" needs.
	foreignConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: training, name: taken-config}
`
)

var (
	mpiJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}
	// tooLong is valid for an MPIJob, but not for its Pods.
	tooLong = strings.Repeat("long", 15)
)

// finishMPIOperator shuts down both broadcasters when the program is no longer the leader,
// just before it exits.
var finishMPIOperator = []edit{
	{"pkg/controller/mpi_job_controller.go", "// NewMPIJobController returns", "// ShutdownEvents writes the last events.\nvar ShutdownEvents = func() {}\n\n"},
	{"pkg/controller/mpi_job_controller.go", "	// For the gang scheduling.", "	ShutdownEvents = eventBroadcaster.Shutdown\n"},
	{"cmd/mpi-operator/app/server.go", "klog.Fatalf(\"Leader election stopped\")", "controllersv1.ShutdownEvents()\n				eventBroadcaster.Shutdown()\n				"},
}

// tellMPIOperator runs the story of mpi-operator. This program plays the Job controller
// and the kubelets.
func tellMPIOperator(ctx context.Context, c *cluster) error {
	if err := c.startMPIOperator(ctx); err != nil {
		return err
	}
	jobs, err := c.resource(mpiJobKind)
	if err != nil {
		return err
	}
	patch := func(ctx context.Context, name, patch string) error {
		_, err := jobs.Namespace(training).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	// reach waits until a condition of the good MPIJob is true.
	reach := func(ctx context.Context, name string) error {
		return c.eventually(ctx, "MPIJob "+name, func(ctx context.Context) (bool, error) {
			job, err := jobs.Namespace(training).Get(ctx, "good", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return condition(*job, name) == "True", nil
		})
	}
	if err := c.create(ctx, strings.ReplaceAll(mpiJob, "NAME", "good")); err != nil {
		return err
	}
	if err := reach(ctx, "Created"); err != nil {
		return err
	}
	acts := []act{
		{0, func(ctx context.Context) error {
			return c.create(ctx, foreignConfigMap+"---"+strings.ReplaceAll(mpiJob, "NAME", "taken")+"---"+strings.ReplaceAll(mpiJob, "NAME", tooLong))
		}},
		{c.duration / 4, func(ctx context.Context) error {
			return errors.Join(reach(ctx, "Running"), patch(ctx, "good", `{"spec":{"runPolicy":{"suspend":true}}}`))
		}},
		{c.duration / 2, func(ctx context.Context) error {
			return errors.Join(reach(ctx, "Suspended"), patch(ctx, "good", `{"spec":{"runPolicy":{"suspend":false}}}`))
		}},
		{c.duration * 3 / 4, func(ctx context.Context) error {
			return errors.Join(reach(ctx, "Running"), c.finishJob(ctx, "good-launcher"), reach(ctx, "Succeeded"))
		}},
		{time.Second, func(ctx context.Context) error {
			return touch(ctx, func(i int) error {
				return patch(ctx, tooLong, fmt.Sprintf(`{"metadata":{"annotations":{"i":"%d"}}}`, i))
			})
		}},
	}
	return c.play(ctx, acts, c.runJobs)
}

// startMPIOperator starts mpi-operator with the roles that it ships.
func (c *cluster) startMPIOperator(ctx context.Context) error {
	for _, ns := range []string{kubeflow, training} {
		if err := c.createNamespace(ctx, ns); err != nil {
			return err
		}
	}
	if err := c.createFiles(ctx, "manifests/base/kubeflow.org_mpijobs.yaml", "manifests/base/cluster-role.yaml"); err != nil {
		return err
	}
	token, err := c.serviceAccount(ctx, kubeflow, "mpi-operator", "mpi-operator")
	if err != nil {
		return err
	}
	// It exits if the API server does not serve MPIJobs.
	jobs, err := c.resource(mpiJobKind)
	if err != nil {
		return err
	}
	err = c.eventually(ctx, "list MPIJobs", func(ctx context.Context) (bool, error) {
		_, err := jobs.List(ctx, metav1.ListOptions{})
		return err == nil, ignoreStale(err)
	})
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfig(token)
	if err != nil {
		return err
	}
	return c.start(exec.CommandContext(context.Background(), c.binary, "-kubeConfig="+kubeconfig, "-lock-namespace="+kubeflow))
}

// runJobs does what the Job controller and the kubelets have to do now.
func (c *cluster) runJobs(ctx context.Context) error {
	jobs, err := c.clients.BatchV1().Jobs(training).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range jobs.Items {
		job := &jobs.Items[i]
		pods := c.clients.CoreV1().Pods(job.Namespace)
		if ptr.Deref(job.Spec.Suspend, false) {
			errs = append(errs, ignoreStale(pods.Delete(ctx, job.Name, metav1.DeleteOptions{})))
			continue
		}
		pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
		pod.Name = job.Name
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	pods, err := c.clients.CoreV1().Pods(training).List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for i := range pods.Items {
		errs = append(errs, ignoreStale(c.runPod(ctx, &pods.Items[i])))
	}
	return errors.Join(errs...)
}

// finishJob reports that a Job is complete.
func (c *cluster) finishJob(ctx context.Context, name string) error {
	jobs := c.clients.BatchV1().Jobs(training)
	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}
