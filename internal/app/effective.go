package app

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"example.com/billing/internal/admin"
)

// redacted stands for a secret that is given.
const redacted = "(given)"

// effective returns the configuration in force for people to read: what was given
// or is the default, without secrets, and the relations that were proven at the start.
func (s *Settings) effective() admin.ConfigStatus {
	var c admin.ConfigStatus
	eachVariable(reflect.ValueOf(s).Elem(), func(name string, value reflect.Value) {
		secret := slices.Contains(secretVariables(), name)
		c.Settings = append(c.Settings, admin.Setting{Name: name, Value: shown(name, value, secret), Secret: secret})
	})
	for _, i := range s.Inequalities() {
		left, right := i.figures()
		c.Inequalities = append(c.Inequalities, admin.Inequality{
			Left: i.Left, LeftIs: left, Relation: i.sign(), Right: i.Right, RightIs: right,
			Holds: i.Holds(), Waived: i.Waived, Guarantee: i.Guarantee,
		})
	}
	return c
}

// eachVariable visits the settings in the order of their declaration.
func eachVariable(settings reflect.Value, visit func(name string, value reflect.Value)) {
	for field, value := range settings.Fields() {
		if tag, ok := field.Tag.Lookup("env"); ok {
			name, _, _ := strings.Cut(tag, ",")
			visit(name, value)
		} else if value.Kind() == reflect.Struct {
			eachVariable(value, visit)
		}
	}
}

// shown returns a value as it is written in the environment, without what is secret in it.
func shown(name string, value reflect.Value, secret bool) string {
	if list, ok := reflect.TypeAssert[[]string](value); ok {
		return strings.Join(list, ",")
	}
	text := fmt.Sprint(value.Interface())
	switch {
	case text == "":
		return ""
	case name == "DATABASE_URL", name == "PAYMENT_URL":
		return withoutPassword(text)
	case secret:
		return redacted
	}
	return text
}

// withoutPassword keeps of a URL what says where it leads. A key=value string, and
// what is no URL, is not shown at all.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return redacted
	}
	u.RawQuery, u.Fragment = "", ""
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// logged returns the settings as attributes of one log line.
func (s *Settings) logged() []any {
	var attributes []any
	for _, setting := range s.effective().Settings {
		attributes = append(attributes, strings.ToLower(setting.Name), setting.Value)
	}
	return attributes
}
