package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"
)

// Entry is one setting as it is shown.
type Entry struct {
	Name   string // of the flag and the key in the file
	Env    string // of the variable
	Value  string // as the environment would spell it; secrets are redacted
	Origin Origin
	Doc    string
	Secret bool
}

// Entries lists all settings with their values, in the order of Settings.
func (s Settings) Entries() []Entry {
	list := make([]Entry, len(fields))
	for i, f := range fields {
		list[i] = Entry{Name: f.name, Env: f.env, Value: f.print(&s), Origin: s.origins[f.name], Doc: f.doc, Secret: f.secret}
	}
	return list
}

// Names lists the settings, for a command to make its flags.
func Names() []Entry {
	var zero Settings
	return zero.Entries()
}

func (f field) print(s *Settings) string {
	switch v := f.of(s).Interface().(type) {
	case bool:
		if v {
			return "on"
		}
		return "off"
	case time.Duration:
		return short(v)
	case slog.Level:
		return strings.ToLower(v.String())
	case []netip.Prefix:
		return joined(v)
	case []Secret:
		return joined(v)
	default:
		return fmt.Sprint(v)
	}
}

func joined[T fmt.Stringer](list []T) string {
	parts := make([]string, len(list))
	for i, one := range list {
		parts[i] = one.String()
	}
	return strings.Join(parts, ",")
}

// short prints 24h instead of 24h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

const generated = "generated from config.Settings by `make generate`; do not edit"

// Reference is docs/settings.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- " + generated + " -->\n# Settings\n\n")
	b.WriteString("Every setting is a flag, an environment variable and a key in the YAML file that `--config` names.\n" +
		"A flag wins over the environment, the environment over the file, the file over the default.\n" +
		"A secret can also be read from a file: `PARLOR_ADMIN_KEY_FILE=/run/secrets/admin-key`.\n" +
		"`parlor config check` tells everything that is wrong; `parlor config show` tells every value and where it came from.\n" +
		"A start with a wrong or missing setting tells each fault on its own line and exits with status 78.\n\n" +
		"| variable | flag and key | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		byDefault := "none"
		if f.serve != "" {
			byDefault = "`" + f.serve + "`"
		}
		if f.dev != f.serve {
			byDefault += " (`dev`: `" + f.dev + "`)"
		}
		name := "`" + f.env + "`"
		if f.secret {
			name += ", `…_FILE`"
		}
		doc := f.doc
		if f.max != 0 {
			doc += " From " + f.bound(f.min) + " to " + f.bound(f.max) + "."
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, f.name, byDefault, doc)
	}
	return b.String()
}

func (f field) bound(n int64) string {
	if f.duration {
		return short(time.Duration(n))
	}
	return fmt.Sprint(n)
}

// Example is .env.example: every variable, commented out with its default where it has one.
func Example() string {
	var b strings.Builder
	b.WriteString("# Settings of parlor serve; " + generated + ".\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "\n# %s\n", f.doc)
		if f.secret {
			fmt.Fprintf(&b, "# Or %s_FILE: the file that holds it.\n%s=\n", f.env, f.env)
		} else {
			fmt.Fprintf(&b, "# %s=%s\n", f.env, f.serve)
		}
	}
	return b.String()
}
