package kubetest

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// objects are the objects of a file in YAML.
func objects(path string) (out []*unstructured.Unstructured, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, text := range bytes.Split(data, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &o.Object); err != nil {
			return nil, fmt.Errorf("%s: object %d: %w", path, i+1, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// apply makes the objects of a file, as kubectl create does.
func (c *cluster) apply(path string) error {
	list, err := objects(path)
	if err != nil {
		return err
	}
	for _, o := range list {
		if err := c.admin.Create(context.Background(), o, kube.FieldValidation("Strict")); err != nil {
			return fmt.Errorf("%s: %s %s: %w", path, o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
