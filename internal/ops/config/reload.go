package config

import "reflect"

// Reload merges new settings into those of a running node. It takes the new value of each setting
// that can change while the node runs. changed names the variables of those that differ and were
// taken, kept those that differ and need a restart.
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
