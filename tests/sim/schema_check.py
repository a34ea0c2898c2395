# SPDX-License-Identifier: GPL-2.0-only
"""The JSON Schema files of the repository, and texts compared with them. Needs python3-jsonschema."""
import glob
import json
import os

import jsonschema

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def strict(schema):
    """The same without members that are not named: readers accept them, but a new one needs a name."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if "properties" in out and isinstance(out["properties"], dict):
        out.setdefault("additionalProperties", False)
    return out


class Schemas:
    """bad: how many errors were printed. checked: how many texts were compared with each schema."""

    def __init__(self):
        self.bad, self.checked, self.schemas = 0, {}, {}
        for path in glob.glob(os.path.join(ROOT, "deploy/schemas/*.json")):
            with open(path, encoding="utf-8") as f:
                schema = json.load(f)
            jsonschema.Draft7Validator.check_schema(schema)
            name = os.path.basename(path).removesuffix(".schema.json")
            self.wrong(schema["title"] != "vcpuscope." + name.replace("-", "/"), f"{path}: its title")
            self.schemas[name] = jsonschema.Draft7Validator(strict(schema))

    def wrong(self, is_wrong, what):
        if is_wrong:
            print(f"wrong: {what}")
            self.bad += 1

    def fits(self, name, text, what):
        """name: a schema, or one of its definitions: SCHEMA#DEFINITION."""
        file, _, definition = name.partition("#")
        validator = self.schemas[file]
        if definition:
            whole = validator.schema
            validator = jsonschema.Draft7Validator({"definitions": whole["definitions"],
                                                    "$ref": f"#/definitions/{definition}"})
        errors = list(validator.iter_errors(json.loads(text)))
        for e in errors[:3]:
            self.wrong(True, f"{what}: {name}: {'/'.join(map(str, e.absolute_path))}: {e.message[:200]}")
        self.checked[name] = self.checked.get(name, 0) + 1
