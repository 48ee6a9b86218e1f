package listing_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// xsd is as much of an XML schema as the one of JUnit has: elements with
// attributes, and others in sequence.
type xsd map[string]xsdElement

type xsdElement struct {
	Name string `xml:"name,attr"`
	Type string `xml:"type,attr"`
	Of   struct {
		Mixed    bool `xml:"mixed,attr"`
		Sequence []struct {
			Ref string `xml:"ref,attr"`
			Max string `xml:"maxOccurs,attr"`
		} `xml:"sequence>element"`
		Attributes []struct {
			Name string `xml:"name,attr"`
			Use  string `xml:"use,attr"`
		} `xml:"attribute"`
	} `xml:"complexType"`
}

func readXSD(t *testing.T, file string) xsd {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	elements := xsd{}
	var read struct {
		Elements []xsdElement `xml:"element"`
	}
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, e := range read.Elements {
		elements[e.Name] = e
	}
	if len(elements) < 8 {
		t.Fatalf("%s has %d elements", file, len(elements))
	}
	return elements
}

func (x xsd) check(text string) error {
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return errors.New("there is no element")
		}
		if err != nil {
			return err
		}
		if start, is := token.(xml.StartElement); is {
			return x.element(dec, start)
		}
	}
}

func (x xsd) element(dec *xml.Decoder, start xml.StartElement) error {
	name := start.Name.Local
	e, known := x[name]
	if !known {
		return fmt.Errorf("<%s> is unknown", name)
	}
	have := map[string]bool{}
	for _, a := range start.Attr {
		have[a.Name.Local] = true
	}
	for _, a := range e.Of.Attributes {
		if a.Use == "required" && !have[a.Name] {
			return fmt.Errorf("<%s> lacks %s", name, a.Name)
		}
		delete(have, a.Name)
	}
	if len(have) > 0 {
		return fmt.Errorf("<%s> has %v", name, have)
	}
	at, times := 0, 0 // the place in the sequence, and how often it was there
	for {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.CharData:
			if e.Type == "" && !e.Of.Mixed && strings.TrimSpace(string(token)) != "" {
				return fmt.Errorf("<%s> has text", name)
			}
		case xml.StartElement:
			for at < len(e.Of.Sequence) && e.Of.Sequence[at].Ref != token.Name.Local {
				at, times = at+1, 0
			}
			if at == len(e.Of.Sequence) {
				return fmt.Errorf("<%s> has <%s>, or has it too late", name, token.Name.Local)
			}
			if times++; times > 1 && e.Of.Sequence[at].Max != "unbounded" {
				return fmt.Errorf("<%s> has <%s> twice", name, token.Name.Local)
			}
			if err := x.element(dec, token); err != nil {
				return err
			}
		}
	}
}
