package app

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// maxSecretBytes bounds a file that holds a secret.
const maxSecretBytes = 64 << 10

// Load reads the settings of billing serve from an environment (a list of
// NAME=value, as os.Environ returns it) and checks them. The error joins all
// complaints: what could not be read does not hide what is wrong elsewhere.
func Load(environ []string) (Settings, error) {
	var s Settings
	vars, complaints := parse(environ, &s)
	if complaints == nil {
		return s, s.validate(vars)
	}
	// Go on with what is readable, and something harmless for the rest.
	var rest Settings
	for name, harmless := range standIns() {
		if vars[name] == "" {
			vars[name] = harmless
		}
	}
	if err := env.ParseWithOptions(&rest, env.Options{Environment: vars}); err != nil {
		return s, errors.Join(complaints, err)
	}
	return s, errors.Join(complaints, rest.validate(vars))
}

// LoadOffline reads the settings of billing serve for a command that works on the
// database alone: brokers and provider need not be given.
func LoadOffline(environ []string) (Settings, error) {
	vars := env.ToMap(environ)
	for name, harmless := range standIns() {
		if name != "DATABASE_URL" && vars[name] == "" && vars[name+"_FILE"] == "" {
			environ = append(slices.Clip(environ), name+"="+harmless)
		}
	}
	return Load(environ)
}

// standIns are valid values of the required variables, to check the others with.
func standIns() map[string]string {
	return map[string]string{
		"KAFKA_BROKERS": "localhost:9092", "DATABASE_URL": "postgres://localhost/billing", "PAYMENT_URL": "http://localhost",
	}
}

// LoadDatabase reads what the migrate commands need.
func LoadDatabase(environ []string) (DatabaseSettings, error) {
	var s DatabaseSettings
	_, err := parse(environ, &s)
	return s, err
}

// LoadAdmin reads what billing health needs.
func LoadAdmin(environ []string) (AdminSettings, error) {
	var s AdminSettings
	_, err := parse(environ, &s)
	return s, err
}

// parse fills a settings struct and returns the variables it was filled from,
// less those that could not be read.
func parse(environ []string, into any) (map[string]string, error) {
	vars := env.ToMap(environ)
	complaints := readSecrets(vars)
	err := env.ParseWithOptions(into, env.Options{Environment: vars})
	if err == nil {
		return vars, errors.Join(complaints...)
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return vars, errors.Join(append(complaints, err)...)
	}
	for _, e := range all.Errors {
		complaints = append(complaints, complaint(into, vars, e))
	}
	return vars, errors.Join(complaints...)
}

// readSecrets replaces each NAME_FILE by what its file holds.
func readSecrets(vars map[string]string) (complaints []error) {
	for _, name := range secretVariables() {
		path, given := vars[name+"_FILE"]
		if !given || path == "" {
			continue
		}
		if vars[name] != "" {
			complaints = append(complaints, fmt.Errorf("%s and %s_FILE are both set; give one of them", name, name))
			continue
		}
		info, err := os.Stat(path)
		if err == nil && info.Size() > maxSecretBytes {
			err = fmt.Errorf("larger than %d bytes", maxSecretBytes)
		}
		var content []byte
		if err == nil {
			content, err = os.ReadFile(path) //nolint:gosec // the operator names the file
		}
		if err != nil {
			complaints = append(complaints, fmt.Errorf("%s_FILE: %w", name, err))
			vars[name] = standIns()[name] // one complaint is enough
			continue
		}
		vars[name] = strings.TrimRight(string(content), "\r\n")
	}
	return complaints
}

// complaint puts an error of the parser in terms of the variable.
func complaint(into any, vars map[string]string, err error) error {
	var (
		unset env.VarIsNotSetError
		empty env.EmptyVarError
		bad   env.ParseError
	)
	switch {
	case errors.As(err, &unset):
		return fmt.Errorf("%s is required", unset.Key)
	case errors.As(err, &empty):
		return fmt.Errorf("%s is required and must not be empty", empty.Key)
	case errors.As(err, &bad):
		name := variableOf(reflect.TypeOf(into).Elem(), bad.Name)
		value := vars[name]
		delete(vars, name)
		return fmt.Errorf("%s: %q is not a valid %s", name, value, kindOf(bad))
	}
	return err
}

// variableOf returns the variable that a settings field is read from.
func variableOf(settings reflect.Type, field string) string {
	for f := range settings.Fields() {
		if tag, ok := f.Tag.Lookup("env"); ok && f.Name == field {
			name, _, _ := strings.Cut(tag, ",")
			return name
		}
		if f.Type.Kind() == reflect.Struct {
			if name := variableOf(f.Type, field); name != "" {
				return name
			}
		}
	}
	return ""
}

func kindOf(e env.ParseError) string {
	switch e.Type.String() {
	case "time.Duration":
		return "duration such as 5s or 168h"
	case "bool":
		return "true or false"
	default:
		return "whole number"
	}
}
