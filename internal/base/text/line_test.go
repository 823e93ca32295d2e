package text_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
)

func TestCheckLineTrimsAndReturnsTheFaultOfTheField(t *testing.T) {
	for _, test := range []struct{ line, want, code string }{
		{"Chess", "Chess", ""},
		{"  Ada Lovelace \n", "Ada Lovelace", ""},
		{strings.Repeat("ä", 20), strings.Repeat("ä", 20), ""},
		{"", "", "required"},
		{" \t", "", "required"},
		{strings.Repeat("ä", 21), "", "range"},
		{"a\nb", "", "format"},
		{"a\x7fb", "", "format"},
		{"a\xffb", "", "format"},
	} {
		got, err := text.CheckLine("name", test.line, 20)
		code := ""
		if e, ok := apierror.As(err); ok && e.Code == apierror.InvalidRequest.Code && e.FieldErrors[0].Field == "name" {
			code = e.FieldErrors[0].Code
		}
		if got != test.want || code != test.code || (err == nil) != (test.code == "") {
			t.Errorf("CheckLine(%q) = %q, %v; want %q, %q", test.line, got, err, test.want, test.code)
		}
	}
}
