// Makes the JSON Schema of events and of exported sessions out of their types: these are declared once, for the compiler, and here
// they become data that a file can be checked by. It reads the syntax of four files, knows only the part of TypeScript that they
// are written in, and stops at anything else. Text in, text out; `npm run events` writes it down.
import { parseSync } from 'oxc-parser'

/** Where the types are declared. */
export const DECLARED = [
  'src/kernel/content.ts',
  'src/kernel/event.ts',
  'src/archive/portable-file.ts',
  'src/stores/move/move-rows.ts',
]

type Node = { readonly type: string; readonly start: number; readonly [key: string]: unknown }
type Schema = Readonly<Record<string, unknown>>
type Property = { readonly key: string; readonly optional: boolean; readonly value: Node }
/** `schemas` are those that something refers to, in the order in which they were met. */
type Types = { readonly declared: ReadonlyMap<string, Declared>; readonly schemas: Map<string, Schema> }
type Declared = { readonly node: Node; readonly tags: Schema }

export function eventSchema(texts: readonly string[]): string {
  const types: Types = { declared: new Map(texts.flatMap(declarationsIn)), schemas: new Map() }
  ref(types, 'Portable')
  const lines = [...types.schemas].map(([name, schema]) => `  ${JSON.stringify(name)}: ${JSON.stringify(schema)},`)
  return `${HEAD}\n${lines.join('\n')}\n}\n`
}

const HEAD = `// biome-ignore-all format: one type a line
// The JSON Schema of events and of exported sessions, by the name of each type. Made by \`npm run events\` out of the types: change
// those. References are to \`#/$defs/\`, so it is also the \`$defs\` of any schema that speaks of events.
import type { Schema } from './schema.ts'

export const SCHEMAS: Readonly<Record<string, Schema>> = {`

function ref(types: Types, name: string): Schema {
  if (!types.schemas.has(name)) {
    const { node, tags } = find(types, name)
    // Its place is taken first, so that a type stands before those it is made of.
    types.schemas.set(name, {})
    types.schemas.set(name, name === 'Event' ? events(types, node) : { ...schemaOf(types, node), ...tags })
  }
  return { $ref: `#/$defs/${name}` }
}

/** Each under its own name. */
function events(types: Types, node: Node): Schema {
  const members = objectsOf(types, node).map((properties) => {
    const type = constantOf(properties.find(({ key }) => key === 'type')?.value ?? node)
    types.schemas.set(String(type), objectOf(types, properties))
    return { $ref: `#/$defs/${String(type)}` }
  })
  return { oneOf: members }
}

function schemaOf(types: Types, node: Node): Schema {
  switch (node.type) {
    case 'TSStringKeyword':
      return { type: 'string' }
    case 'TSNumberKeyword':
      // No number of an event is negative.
      return { type: 'number', minimum: 0 }
    case 'TSBooleanKeyword':
      return { type: 'boolean' }
    case 'TSNullKeyword':
      return { type: 'null' }
    case 'TSLiteralType':
      return { const: constantOf(node) }
    case 'TSParenthesizedType':
    case 'TSTypeOperator':
      return schemaOf(types, at(node, 'typeAnnotation'))
    case 'TSArrayType':
      return { type: 'array', items: schemaOf(types, at(node, 'elementType')) }
    case 'TSUnionType':
      return unionOf(types, node)
    case 'TSTypeReference':
      return referenceOf(types, node)
    default:
      return objectOf(types, objectsOf(types, node)[0] ?? [])
  }
}

function referenceOf(types: Types, node: Node): Schema {
  const name = nameOf(node)
  if (name === 'Json') return {}
  if (name === 'Record') {
    const [key, value] = parametersOf(node).map((each) => schemaOf(types, each))
    return { type: 'object', propertyNames: key, additionalProperties: value }
  }
  return isWrapper(name) ? schemaOf(types, parameterOf(node)) : ref(types, name)
}

function unionOf(types: Types, node: Node): Schema {
  const words = wordsOf(types, node)
  if (words !== null) return { enum: words }
  const members = nodesAt(node, 'types')
  const plain = members.some((member) => member.type === 'TSStringKeyword' || member.type === 'TSNullKeyword')
  if (plain) return { anyOf: members.map((member) => schemaOf(types, member)) }
  return { oneOf: objectsOf(types, node).map((properties) => objectOf(types, properties)) }
}

/** The words of a union of nothing but words, or null. */
function wordsOf(types: Types, node: Node): readonly unknown[] | null {
  if (node.type === 'TSLiteralType') return [constantOf(node)]
  if (node.type === 'TSParenthesizedType') return wordsOf(types, at(node, 'typeAnnotation'))
  if (node.type === 'TSTypeReference' && types.declared.has(nameOf(node)))
    return wordsOf(types, find(types, nameOf(node)).node)
  if (node.type !== 'TSUnionType') return null
  const words = nodesAt(node, 'types').map((member) => wordsOf(types, member))
  return words.every((each) => each !== null) ? words.flat() : null
}

/** The objects of a type, each with all its properties: unions are taken apart, intersections and names are put together. */
function objectsOf(types: Types, node: Node): readonly (readonly Property[])[] {
  switch (node.type) {
    case 'TSTypeLiteral':
      return [nodesAt(node, 'members').map(propertyOf)]
    case 'TSParenthesizedType':
      return objectsOf(types, at(node, 'typeAnnotation'))
    case 'TSUnionType':
      return nodesAt(node, 'types').flatMap((member) => objectsOf(types, member))
    case 'TSIntersectionType':
      return nodesAt(node, 'types')
        .map((member) => objectsOf(types, member))
        .reduce((left, right) => left.flatMap((some) => right.map((more) => [...some, ...more])))
    case 'TSTypeReference':
      return objectsOf(types, isWrapper(nameOf(node)) ? parameterOf(node) : find(types, nameOf(node)).node)
    default:
      throw new Error(`${node.type} is not known here. Say it otherwise, or teach it to scripts/event-schema.ts.`)
  }
}

function objectOf(types: Types, properties: readonly Property[]): Schema {
  const required = properties.filter(({ optional }) => !optional).map(({ key }) => key)
  const schemas = properties.map(({ key, value }) => [key, schemaOf(types, value)])
  return { type: 'object', properties: Object.fromEntries(schemas), required, additionalProperties: false }
}

function find(types: Types, name: string): Declared {
  const found = types.declared.get(name)
  if (found === undefined) throw new Error(`The type ${name} is declared in none of: ${DECLARED.join(', ')}.`)
  return found
}

function declarationsIn(text: string): readonly (readonly [string, Declared])[] {
  const { program, comments, errors } = parseSync('types.ts', text)
  if (errors.length > 0) throw new Error(errors[0]?.message)
  return (program.body as unknown as readonly Node[]).flatMap((statement) => {
    const node = statement.type === 'ExportNamedDeclaration' ? (statement['declaration'] as Node | null) : statement
    if (node?.type !== 'TSTypeAliasDeclaration') return []
    const comment = comments.findLast(
      ({ end }) => end <= statement.start && text.slice(end, statement.start).trim() === '',
    )
    const scalar = at(node, 'typeAnnotation').type
    const tags = scalar === 'TSStringKeyword' || scalar === 'TSNumberKeyword' ? tagsOf(comment?.value ?? '') : {}
    return [[String(at(node, 'id')['name']), { node: at(node, 'typeAnnotation'), tags }] as const]
  })
}

/** Of a text or a number with a name: its first sentence says what it must be, and its tags are keywords. */
function tagsOf(comment: string): Schema {
  const said = comment.replace(/^\*\s*/, '').trim()
  const description = (said.split(/\. |\.$/)[0] ?? '').replace(/^[A-Z]/, (first) => first.toLowerCase())
  const tags = [...said.matchAll(/@(\w+) (\S+)/g)].map(([, tag = '', value = '']) => {
    if (tag === 'asType') return ['type', value]
    return [tag, tag === 'pattern' ? value : Number(value)]
  })
  return { description, ...(Object.fromEntries(tags) as Schema) }
}

function propertyOf(member: Node): Property {
  if (member.type !== 'TSPropertySignature') throw new Error(`${member.type} cannot be in a log.`)
  const key = at(member, 'key')
  const value = at(at(member, 'typeAnnotation'), 'typeAnnotation')
  return { key: String(key['name'] ?? key['value']), optional: member['optional'] === true, value }
}

function constantOf(node: Node): unknown {
  return at(node, 'literal')['value']
}

/** What changes nothing about the data. */
function isWrapper(name: string): boolean {
  return name === 'Frozen' || name === 'Readonly'
}

function nameOf(node: Node): string {
  return String(at(node, 'typeName')['name'])
}

function parameterOf(node: Node): Node {
  return parametersOf(node)[0] as Node
}

function parametersOf(node: Node): readonly Node[] {
  return nodesAt(at(node, 'typeArguments'), 'params')
}

function at(node: Node, key: string): Node {
  return node[key] as Node
}

function nodesAt(node: Node, key: string): readonly Node[] {
  return node[key] as readonly Node[]
}
