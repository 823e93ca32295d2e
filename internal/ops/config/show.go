package config

import (
	"fmt"
	"strings"
)

// Entry is one setting, for commands and documents.
type Entry struct {
	Name   string // of the flag and the key in the file
	Env    string // of the variable
	Value  string // as it was set, or the default; "[redacted]" for a secret that is set
	Origin Origin
	Doc    string
	Secret bool
}

// Entries returns all settings with their values, in the order of Settings.
func (s Settings) Entries() []Entry {
	list := make([]Entry, len(settings))
	for i, f := range settings {
		list[i] = Entry{
			Name: f.name, Env: f.env, Value: s.texts[f.name], Origin: s.origins[f.name], Doc: f.doc, Secret: f.secret,
		}
	}
	return list
}

// EntriesWithoutValues returns all settings without values, for a command to declare its flags.
func EntriesWithoutValues() []Entry { return Settings{}.Entries() }

const generatedNotice = "generated from config.Settings by `make generate`; do not edit"

// ReferenceMarkdown returns the content of docs/settings.md.
func ReferenceMarkdown() string {
	var b strings.Builder
	b.WriteString("<!-- " + generatedNotice + " -->\n# Settings\n\n")
	b.WriteString("Every setting is a flag, an environment variable and a key in the YAML file that `--config` names.\n" +
		"A flag wins over the environment, the environment over the file, the file over the default.\n" +
		"A secret is no flag, because every process of a machine can read the flags of another one. It can also be read " +
		"from a file: `PARLOR_ADMIN_KEY_FILE=/run/secrets/admin-key`.\n" +
		"`parlor config check` reports everything that is wrong; " +
		"`parlor config show` prints every value and where it came from.\n" +
		"A start with a wrong or missing setting prints each error on its own line and exits with status 78.\n\n" +
		"| variable | flag and key | default | meaning |\n|---|---|---|---|\n")
	for _, f := range settings {
		byDefault := "none"
		if f.serveDefault != "" {
			byDefault = "`" + f.serveDefault + "`"
		}
		if f.devDefault != f.serveDefault {
			byDefault += " (`dev`: `" + f.devDefault + "`)"
		}
		name := "`" + f.env + "`"
		if f.secret {
			name += ", `…_FILE`"
		}
		doc := f.doc
		if f.max != "" {
			doc += " From " + f.min + " to " + f.max + "."
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, f.name, byDefault, doc)
	}
	return b.String()
}

// ExampleEnv returns the content of .env.example: every variable, commented out with its default if
// it has one.
func ExampleEnv() string {
	var b strings.Builder
	b.WriteString("# Settings of parlor serve; " + generatedNotice + ".\n")
	for _, f := range settings {
		fmt.Fprintf(&b, "\n# %s\n", f.doc)
		if f.secret {
			fmt.Fprintf(&b, "# Or %s_FILE: the file that holds it.\n%s=\n", f.env, f.env)
		} else {
			fmt.Fprintf(&b, "# %s=%s\n", f.env, f.serveDefault)
		}
	}
	return b.String()
}
