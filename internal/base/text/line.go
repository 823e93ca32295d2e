// Package text checks what one person writes and others read: the names of games and players, and
// of hosts.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// CheckLine returns a line without the white space around it. The line must not be empty, must have
// at most maxRunes characters, and must be UTF-8 without control characters. Otherwise CheckLine
// returns invalid_request for the field.
func CheckLine(field, line string, maxRunes int) (string, error) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return "", apierror.InvalidRequest.WithField(field, "required", "must not be empty")
	case utf8.RuneCountInString(line) > maxRunes:
		message := "must have at most " + strconv.Itoa(maxRunes) + " characters"
		return "", apierror.InvalidRequest.WithField(field, "range", message)
	case !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl):
		return "", apierror.InvalidRequest.WithField(field, "format", "must be text without control characters")
	}
	return line, nil
}
