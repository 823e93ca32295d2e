// Package dynamic has the client with which a template looks up objects of a running cluster.
package dynamic

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// ResourceInterface reads the objects of one kind.
type ResourceInterface interface {
	Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error)
	List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// NamespaceableResourceInterface reads them in all namespaces, or in one.
type NamespaceableResourceInterface interface {
	Namespace(name string) ResourceInterface
	ResourceInterface
}

// Interface reads objects of any kind.
type Interface interface {
	Resource(r schema.GroupVersionResource) NamespaceableResourceInterface
}

// NewForConfig returns an error: there is no cluster.
func NewForConfig(*rest.Config) (Interface, error) { return nil, errors.New("there is no cluster") }
