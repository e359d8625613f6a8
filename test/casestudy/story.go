package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/internal/controlplane"
)

const (
	// shop is the namespace of the story, and limited another one with a quota.
	shop, limited = "shop", "limited"
	// outcome is the label of Pods that tells the kubelet what to do with them.
	outcome                   = "outcome"
	fails, succeeds, runsLong = "fails", "succeeds", "runs"
	// lostNode disappears in the story.
	lostNode = "node-b"
)

// tell runs the story with the stock and the moved kube-controller-manager, at the same
// time.
func tell(ctx context.Context, cfg config) (*story, error) {
	apiserver, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	s := &story{Date: time.Now().UTC().Format(time.DateOnly), Duration: cfg.story}
	sides := map[string]*side{"stock": &s.Stock, "moved": &s.Moved}
	done := make(chan error, len(sides))
	for tag, result := range sides {
		go func() {
			err := tellOne(ctx, apiserver, binary(cfg.work, tag), filepath.Join(cfg.work, "story-"+tag), cfg.story, result)
			if err != nil {
				err = fmt.Errorf("%s: %w", tag, err)
			}
			done <- err
		}()
	}
	for range sides {
		err = errors.Join(err, <-done)
	}
	return s, err
}

// tellOne runs the story with one kube-controller-manager. It keeps the log, the audit
// log and the Events in dir.
func tellOne(ctx context.Context, apiserver, program, dir string, duration time.Duration, result *side) (err error) {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c, err := startCluster(ctx, apiserver, program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.server.Stop()) }()
	err = script(ctx, c, duration)
	// Stop the program first, so that it finds its objects as they are.
	exit, stopErr := c.stopManager(ctx)
	if err = errors.Join(err, stopErr); err != nil {
		return err
	}
	return c.measure(ctx, exit, result)
}

// act is a part of the story.
type act struct {
	at time.Duration
	do func(context.Context) error
}

// script runs the story.
func script(ctx context.Context, c *cluster, duration time.Duration) error {
	acts := []act{
		{0, func(ctx context.Context) error { return create(ctx, c.clients) }},
		{4 * time.Minute, scale(c, limited, "limited", 10)},
		{8 * time.Minute, func(context.Context) error { c.lose(lostNode); return nil }},
		{12 * time.Minute, raiseQuota(c)},
		{16 * time.Minute, func(ctx context.Context) error {
			return c.clients.CoreV1().Nodes().Delete(ctx, lostNode, metav1.DeleteOptions{})
		}},
	}
	for minute := range int(duration / time.Minute) {
		replicas := 8
		if minute%2 == 1 {
			replicas = 3
		}
		acts = append(acts, act{time.Duration(minute)*time.Minute + 30*time.Second, scale(c, shop, "web", replicas)})
	}
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	failed := make(chan error, len(acts))
	for _, a := range acts {
		go func() {
			select {
			case <-ctx.Done():
			case <-time.After(a.at):
				if err := a.do(ctx); err != nil {
					failed <- fmt.Errorf("story at %v: %w", a.at, err)
				}
			}
		}()
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case err := <-c.exited:
			c.exited <- err
			return fmt.Errorf("kube-controller-manager exited: %w", err)
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return nil
		case <-ticker.C:
			if err := c.kubelet(ctx); err != nil && ctx.Err() == nil {
				log.Printf("%s: kubelet: %v", c.dir, err)
			}
		}
	}
}

// create creates the objects of the story.
func create(ctx context.Context, clients kubernetes.Interface) error {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}},
	}
	var errs []error
	for _, ns := range []string{shop, limited} {
		_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	_, err := clients.CoreV1().ResourceQuotas(limited).Create(ctx, quota, metav1.CreateOptions{})
	errs = append(errs, err)
	for name, cronJob := range map[string]*batchv1.CronJob{
		"backup": newCronJob(fails, batchv1.AllowConcurrent),
		"report": newCronJob(succeeds, batchv1.AllowConcurrent),
		"stuck":  newCronJob(runsLong, batchv1.ForbidConcurrent),
	} {
		cronJob.Name = name
		_, err := clients.BatchV1().CronJobs(shop).Create(ctx, cronJob, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	for name, ns := range map[string]string{"web": shop, "limited": limited} {
		_, err := clients.AppsV1().Deployments(ns).Create(ctx, newDeployment(name), metav1.CreateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func newCronJob(podOutcome string, policy batchv1.ConcurrencyPolicy) *batchv1.CronJob {
	template := newPodTemplate(podOutcome, podOutcome)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.CronJob{Spec: batchv1.CronJobSpec{
		Schedule:          "* * * * *",
		ConcurrencyPolicy: policy,
		JobTemplate:       batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](1), Template: template}},
	}}
}

func newDeployment(name string) *appsv1.Deployment {
	template := newPodTemplate(name, runsLong)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template,
		},
	}
}

func newPodTemplate(app, podOutcome string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app, outcome: podOutcome}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
	}
}

func scale(c *cluster, namespace, deployment string, replicas int) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		_, err := c.clients.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}

func raiseQuota(c *cluster) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := []byte(`{"spec":{"hard":{"pods":"20"}}}`)
		_, err := c.clients.CoreV1().ResourceQuotas(limited).Patch(ctx, "pods", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
}
