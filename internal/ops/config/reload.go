package config

import "reflect"

// Reload returns the settings of a node that runs, with the new values of those that it can take.
// It also returns the variables of the settings that differ: changed has those that were taken, and
// kept those that a node takes at its start only.
func Reload(running, next Settings) (merged Settings, changed, kept []string) {
	merged = running
	for _, f := range settings {
		before, after := f.valueIn(&merged), f.valueIn(&next)
		switch {
		case reflect.DeepEqual(before.Interface(), after.Interface()):
		case f.reload:
			before.Set(after)
			changed = append(changed, f.env)
		default:
			kept = append(kept, f.env)
		}
	}
	return merged, changed, kept
}
