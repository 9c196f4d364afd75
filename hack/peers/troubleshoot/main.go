// Reads a spec with the types of troubleshoot.sh, and prints a file as its support-bundle program would write it: redacted by its
// own redactors and by those of the spec. For the end-to-end tests.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/replicatedhq/troubleshoot/pkg/apis/troubleshoot/v1beta2"
	"github.com/replicatedhq/troubleshoot/pkg/redact"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: troubleshoot SPEC FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(spec, file string) error {
	text, err := os.ReadFile(spec)
	if err != nil {
		return err
	}
	documents := bytes.Split(text, []byte("\n---\n"))
	if len(documents) != 2 {
		return fmt.Errorf("%s has %d documents: want a SupportBundle and a Redactor", spec, len(documents))
	}
	// Strict: a field that the type does not have is an error, and not dropped.
	var bundle v1beta2.SupportBundle
	if err := yaml.UnmarshalStrict(documents[0], &bundle); err != nil {
		return fmt.Errorf("SupportBundle: %w", err)
	}
	var redactor v1beta2.Redactor
	if err := yaml.UnmarshalStrict(documents[1], &redactor); err != nil {
		return fmt.Errorf("Redactor: %w", err)
	}
	input, err := os.Open(file)
	if err != nil {
		return err
	}
	defer input.Close()
	redacted, err := redact.Redact(input, file, redactor.Spec.Redactors)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, redacted)
	return err
}
