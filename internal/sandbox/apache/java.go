package apache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// minJava is what Kafka 4.x brokers ask for.
	minJava = 17
	// javaTimeout bounds `java -version`.
	javaTimeout = 30 * time.Second
	// libsFolder is where `make kafka-jars` puts the jars, from the root of the repository.
	libsFolder = ".cache/kafka/libs"
	// searchDepth bounds the walk from the working directory up to the root of the repository.
	searchDepth = 16
)

var (
	// ErrNoJava is returned by Start where no Java of version 17 or newer is found.
	ErrNoJava = errors.New("no Java 17 or newer for the Apache Kafka broker: run `make kafka-jars` (it installs Java and Maven where it can), " +
		"or install it (Debian: apt-get install openjdk-17-jre-headless; Homebrew: brew install openjdk@17)")
	// ErrNoJars is returned by Start where the broker's jars are not there.
	ErrNoJars = errors.New("no jars of the Apache Kafka broker: run `make kafka-jars` (it installs Java and Maven where it can)")
	// ErrMixedJars is returned by Start where the folder holds more than one version of the broker.
	ErrMixedJars = errors.New("jars of several Apache Kafka versions in one folder: remove it and run `make kafka-jars`")
)

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// findJava returns the first Java that is new enough: the given one only, or else of PATH and Homebrew's folders. macOS has a
// java in its PATH that merely asks to install one, so the version is always asked for.
func findJava(ctx context.Context, given string) (string, error) {
	candidates := []string{given}
	if given == "" {
		candidates = []string{
			"java",
			"/opt/homebrew/opt/openjdk/bin/java", "/opt/homebrew/opt/openjdk@17/bin/java",
			"/usr/local/opt/openjdk/bin/java", "/usr/local/opt/openjdk@17/bin/java",
		}
	}

	var tried []error

	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}

		if err := checkJava(ctx, path); err != nil {
			tried = append(tried, err)

			continue
		}

		return path, nil
	}

	return "", errors.Join(append([]error{ErrNoJava}, tried...)...)
}

// checkJava asks a Java for its version.
func checkJava(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, javaTimeout)
	defer cancel()

	out, err := process.Run(ctx, process.Spec{Path: path, Args: []string{"-version"}})
	if err != nil {
		return fmt.Errorf("ask java for its version: %w", err)
	}

	found := javaVersion.FindStringSubmatch(out)
	if found == nil {
		return fmt.Errorf("%s: unknown version: %s", path, out)
	}

	if major, err := strconv.Atoi(found[1]); err != nil || major < minJava {
		return fmt.Errorf("%s: version %s is older than %d", path, found[1], minJava)
	}

	return nil
}

// findLibs returns the folder with the broker's jars: the given one, or else that of the repository around the working directory.
func findLibs(given string) (string, error) {
	if given != "" {
		return checkLibs(given)
	}

	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for the jars: %w", err)
	}

	for range searchDepth {
		libs := filepath.Join(dir, libsFolder)
		if _, err := os.Stat(libs); err == nil {
			return checkLibs(libs)
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}

		dir = parent
	}

	return "", ErrNoJars
}

// checkLibs wants exactly one broker jar in the folder.
func checkLibs(libs string) (string, error) {
	libs, err := filepath.Abs(libs)
	if err != nil {
		return "", fmt.Errorf("jars: %w", err)
	}

	brokers, err := filepath.Glob(filepath.Join(libs, "kafka_2.13-*.jar"))
	if err != nil {
		return "", fmt.Errorf("jars in %s: %w", libs, err)
	}

	switch len(brokers) {
	case 0:
		return "", fmt.Errorf("%s: %w", libs, ErrNoJars)
	case 1:
		return libs, nil
	default:
		return "", fmt.Errorf("%s: %w", libs, ErrMixedJars)
	}
}
