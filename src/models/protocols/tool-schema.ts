// The schema of a tool in the form that providers take: an object with properties, and no choice at its root. A tool
// whose input is a union is shown as one object with the fields of all its branches; the tool's own schema still checks
// the arguments. Pure.
import type { Json } from '../../kernel/content.ts'
import { asList, isObject } from '../../view/untrusted-json.ts'

type Fields = { readonly [key: string]: Json }
/** The schemas of each field in all branches, by name, in the order found. */
type MergedShape = {
  readonly properties: Map<string, Json[]>
  readonly required: ReadonlySet<string>
  readonly said: string[]
}

const CHOICES = ['oneOf', 'anyOf', 'allOf'] as const
const DEPTH_MAX = 8

/**
 * https://github.com/anthropics/claude-code/issues/10606: `oneOfSchemas`, `allOf`, `anyOf`, `enum` and `not` are refused at
 * the top.
 */
const ROOT_REFUSED = [...CHOICES, 'enum', 'const', 'not'] as const

/** The description of the tool that takes the final answer. */
export const OUTPUT_TOOL = 'Gives the final answer. Call it once, alone, when the work is done.'

export function toolSchema(parameters: Json): Json {
  const given: Fields = isObject(parameters) ? parameters : {}
  if (!hasRootChoice(given)) {
    if (given['type'] === 'object' && 'properties' in given) return given
    return { ...given, type: 'object', properties: given['properties'] ?? {} }
  }
  const { properties, required, said } = shapeOf(given, given, 0)
  const kept = Object.entries(given).filter(([name]) => !REPLACED.has(name))
  return {
    ...Object.fromEntries(kept),
    type: 'object',
    ...(said.length > 0 ? { description: said.join('\nOr: ') } : {}),
    properties: Object.fromEntries([...properties].map(([name, all]) => [name, oneOfSchemas(all)])),
    required: [...required],
  }
}

export function hasRootChoice(schema: Fields): boolean {
  return ROOT_REFUSED.some((word) => word in schema)
}

const REPLACED: ReadonlySet<string> = new Set([
  ...ROOT_REFUSED,
  'type',
  'properties',
  'required',
  'additionalProperties',
])

/** Every branch may add a field. A field is required only if all branches of a choice require it. */
function shapeOf(node: Fields, root: Fields, depth: number): MergedShape {
  const whole = followReference(node, root)
  const properties = new Map<string, Json[]>()
  const required = new Set(textsIn(whole['required']))
  const said = typeof whole['description'] === 'string' ? [whole['description']] : []
  addSchemas(properties, Object.entries(isObject(whole['properties']) ? whole['properties'] : {}))
  for (const word of depth < DEPTH_MAX ? CHOICES : []) {
    const shapes = asList(whole[word])
      .filter(isObject)
      .map((branch) => shapeOf(branch, root, depth + 1))
    for (const shape of shapes) {
      said.push(...shape.said)
      for (const [name, all] of shape.properties)
        addSchemas(
          properties,
          all.map((each) => [name, each]),
        )
    }
    for (const name of shapes.flatMap((shape) => [...shape.required])) {
      if (word === 'allOf' || shapes.every((shape) => shape.required.has(name))) required.add(name)
    }
  }
  return { properties, required, said }
}

function addSchemas(to: Map<string, Json[]>, found: readonly (readonly [string, Json])[]): void {
  for (const [name, schema] of found) {
    const known = to.get(name) ?? []
    if (!known.some((each) => JSON.stringify(each) === JSON.stringify(schema))) known.push(schema)
    to.set(name, known)
  }
}

function oneOfSchemas(schemas: readonly Json[]): Json {
  return schemas.length === 1 ? (schemas[0] ?? {}) : { anyOf: schemas }
}

/** Resolves `#/$defs/Name`; anything else is returned unchanged. */
function followReference(node: Fields, root: Fields): Fields {
  const { $ref } = node
  const found = typeof $ref === 'string' ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec($ref) : null
  const [, group = '', name = ''] = found ?? []
  const all = root[group]
  const meant = isObject(all) ? all[name] : undefined
  return isObject(meant) ? meant : node
}

function textsIn(value: Json | undefined): readonly string[] {
  return asList(value).filter((each) => typeof each === 'string')
}
