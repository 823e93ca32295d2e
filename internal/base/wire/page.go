package wire

// The number of items in one page of a list: when the request names none, and at most.
const (
	DefaultPageSize = 20
	MaxPageSize     = 100
)
