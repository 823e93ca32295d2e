package handlers

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

//go:generate go test . -run ^TestGeneratedFilesAreFresh$ -update

// errorList is the errors that an operation returns. openapi.yaml lists them by status; `make
// generate` writes it.
type errorList []*apierror.Error

// and returns a new list with more errors.
func (l errorList) and(more ...*apierror.Error) errorList { return slices.Concat(l, more) }

// commonErrors returns the errors that follow from a route's row: its callers, its rate limit and
// its input.
func (rt *route) commonErrors() errorList {
	list := errorList{apierror.Internal}
	if rt.rateLimitClass != "" {
		// A full store refuses a read too where that writes, as an audit does.
		list = append(list, apierror.RateLimited, apierror.StoreUnavailable, apierror.StoreFull, apierror.InvalidRequest)
		if rt.method != http.MethodGet {
			list = append(list, apierror.OutcomeUnknown)
		}
	}
	if rt.callers != anyone {
		// A suspended player gets account_suspended from operations for staff too.
		list = append(list, apierror.Unauthenticated, apierror.AccessTokenExpired, apierror.AccountSuspended)
		if rt.callers&everyone != everyone {
			list = append(list, apierror.Forbidden)
		}
	}
	if rt.method == http.MethodPost || rt.method == http.MethodPut || rt.method == http.MethodPatch {
		list = append(list, apierror.InvalidJSON, apierror.InvalidRequest, apierror.PayloadTooLarge,
			apierror.UnsupportedMediaType)
	}
	for _, id := range pathIDsOf(rt.path) {
		list = append(list, id.notFound)
	}
	if rt.idempotency != keyIgnored && rt.idempotency != neverStored {
		list = append(list, apierror.IdempotencyKeyReused)
	}
	if rt.hasKeyQuota() {
		list = append(list, apierror.LimitReached)
	}
	switch rt.idempotency {
	case byReceiptKeyRequired:
		list = append(list, apierror.IdempotencyKeyRequired)
	case byStoredResponse:
		list = append(list, apierror.RequestInProgress, apierror.OutcomeUnknown)
	}
	return list
}

// allErrors returns every error of an operation once, ordered by status and code.
func (rt *route) allErrors() errorList {
	list := slices.Concat(rt.commonErrors(), rt.ownErrors)
	slices.SortFunc(list, func(a, b *apierror.Error) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return slices.Compact(list)
}
