// Command generate writes the Go types of the arguments of scripts from the headers of the scripts.
// It runs in the folder of package scripts.
package main

import (
	"fmt"
	"go/format"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/scripts"
)

// argsPath is the file with the types.
const argsPath = "args.go"

func main() {
	if err := writeArgs(); err != nil {
		fmt.Fprintln(os.Stderr, "write the arguments of the scripts:", err)
		os.Exit(1)
	}
}

func writeArgs() error {
	text, err := formatArgs()
	if err != nil {
		return err
	}
	return os.WriteFile(argsPath, text, 0o600)
}

// formatArgs returns the text of the file.
func formatArgs() ([]byte, error) {
	var b strings.Builder
	b.WriteString("// Code generated from the headers of the scripts; DO NOT EDIT.\n\npackage scripts\n")
	written := map[string]bool{} // libraries
	for _, name := range slices.Sorted(maps.Keys(scripts.All())) {
		s := scripts.All()[name]
		for _, library := range s.Libraries {
			if !written[library.Name] && len(library.Args.Names) > 0 {
				written[library.Name] = true
				writeLibrary(&b, library)
			}
		}
		if len(s.Args.Names) > 0 {
			writeScript(&b, s)
		}
	}
	return format.Source([]byte(b.String()))
}

// writeLibrary writes the type of the arguments of a library.
func writeLibrary(b *strings.Builder, library scripts.Header) {
	b.WriteByte('\n')
	writeComment(b, "", fmt.Sprintf("%s are the arguments of %s.lua, which begin those of the scripts that include it.",
		typeName(library.Name), library.Name))
	fmt.Fprintf(b, "type %s struct {\n", typeName(library.Name))
	writeFields(b, library.Args)
	b.WriteString("}\n")
}

// writeScript writes the type of the arguments of a script, with the method that lists them.
func writeScript(b *strings.Builder, s *scripts.Script) {
	name := typeName(s.Name)
	fmt.Fprintf(b, "\n// %s are the arguments of %s.\ntype %s struct {\n", name, strings.TrimSuffix(name, "Args"), name)
	for _, library := range s.Libraries {
		if len(library.Args.Names) > 0 {
			fmt.Fprintf(b, "%s\n", typeName(library.Name))
		}
	}
	writeFields(b, s.OwnArgs)
	b.WriteString("}\n\n")
	list := "[]any{\n" + wrap("\t\t", listFields(s.Args)) + "\n}"
	if s.Args.Rest == "" {
		writeComment(b, "", "List returns the arguments in their order.")
		fmt.Fprintf(b, "func (a %s) List() []any {\nreturn %s\n}\n", name, list)
		return
	}
	writeComment(b, "", "List returns the arguments in their order, and behind them more: "+s.Args.Rest+".")
	fmt.Fprintf(b, "func (a %s) List(more ...any) []any {\nreturn append(%s, more...)\n}\n", name, list)
}

// listFields returns the fields of the arguments, with a comma behind each.
func listFields(args scripts.Params) string {
	var b strings.Builder
	for _, name := range args.Names {
		b.WriteString(" a." + fieldName(name) + ",")
	}
	return b.String()
}

func writeFields(b *strings.Builder, args scripts.Params) {
	for i, name := range args.Names {
		if meaning := args.Meanings[i]; meaning != "" {
			writeComment(b, "\t", fieldName(name)+": "+meaning+".")
		}
		b.WriteString(fieldName(name) + " any\n")
	}
}

func writeComment(b *strings.Builder, indent, text string) {
	b.WriteString(wrap(indent+"// ", strings.ReplaceAll(text, "''", `""`)) + "\n")
}

// wrap returns the words of a text in lines of at most 100 columns that begin with a prefix.
func wrap(prefix, text string) string {
	var lines []string
	line := prefix
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > 92 && line != prefix { // a tab counts for more than one column
			lines, line = append(lines, strings.TrimRight(line, " ")), prefix
		}
		line += word + " "
	}
	return strings.Join(append(lines, strings.TrimRight(line, " ")), "\n")
}

// typeName returns RoomJoinArgs for room_join, and CallArgs for lib_call.
func typeName(file string) string {
	return fieldName(strings.TrimPrefix(file, scripts.LibraryPrefix)) + "Args"
}

// initialisms are the words that are written in capitals.
var initialisms = []string{"id", "ms", "ttl", "json"}

// fieldName returns RoomID for room_id.
func fieldName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if slices.Contains(initialisms, word) {
			b.WriteString(strings.ToUpper(word))
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
