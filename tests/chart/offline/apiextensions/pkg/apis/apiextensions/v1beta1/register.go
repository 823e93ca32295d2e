// Package v1beta1 is about custom resource definitions, which the chart has none of: see
// ../../../../../client-go/README.md.
package v1beta1

import "k8s.io/apimachinery/pkg/runtime"

// AddToScheme adds no kind.
func AddToScheme(*runtime.Scheme) error { return nil }
