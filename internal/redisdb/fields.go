package redisdb

// NewFieldsOf is NewFields for the reply of HMGET: the values of the named fields in their order,
// nil for an absent one.
func NewFieldsOf(name string, fields []string, values []any) *Fields {
	hash := make(map[string]string, len(fields))
	for i, field := range fields {
		if value, ok := values[i].(string); ok {
			hash[field] = value
		}
	}
	return NewFields(name, hash)
}
