// docs/reference/routes.md, from the table by which the server checks requests. Text only.
import { BODY_MAX, type Route, ROUTES, SIGNED } from '../../src/server/wire-routes.ts'
import type { WireSchema } from '../../src/server/wire-schemas.ts'
import { cell, codeCell, slug } from './markdown.ts'

const MB = 1024 * 1024

export function routesPage(): string {
  const routes = Object.entries(ROUTES)
  const index = routes.map(([name, route]) => {
    return `| [\`${heading(route)}\`](#${slug(heading(route))}) | ${cell(route.says)} | ${route.role} | \`${name}\` |`
  })
  return `# Routes

Every route of a server: who may ask it, what it takes, and what it answers.

[The guide](../guide/server.md) tells how to start a server, or mount one in yours. \`GET /v1/openapi.json\` is this table as an OpenAPI 3.1 document, with the schema of every answer. Refusals are in [errors](errors.md).

Operators and approvers may do what viewers may, and neither what the other may; admins may do everything. A body is JSON of at most ${BODY_MAX / MB} MB unless it says otherwise, and unknown fields are refused. With an \`Idempotency-Key\` in the header a request that is sent twice changes something once.

| route | what it does | role | name |
|---|---|---|---|
${index.join('\n')}

${routes.map(([, route]) => routeSection(route)).join('\n\n')}
`
}

function heading({ method, path }: Route): string {
  return `${method} ${path}`
}

function routeSection(route: Route): string {
  const { says, role, query, body, bodyMax, keyed } = route
  const terms = [
    role === SIGNED ? 'Credential: the signature of the delivery' : `Role: ${role}`,
    answerText(route),
    ...(keyed ? ['takes an `Idempotency-Key`'] : []),
    ...(bodyMax === undefined ? [] : [`the body may have ${bodyMax / MB} MB`]),
  ]
  const parts = [
    `## ${heading(route)}`,
    `${says.slice(0, 1).toUpperCase()}${says.slice(1)}.`,
    `${terms.join(' · ')}`,
    ...(query ? [`Query:\n\n${fieldTable(query)}`] : []),
    ...(body ? bodyParts(body) : []),
  ]
  return parts.join('\n\n')
}

function answerText({ status, answer }: Route): string {
  if (answer === 'stream') return `answers ${status} with a stream of events (\`text/event-stream\`)`
  if (answer === 'text') return `answers ${status} with text`
  if (answer === 'bytes') return `answers ${status} with bytes to download`
  return `answers ${status} with \`${answer}\``
}

function bodyParts(body: WireSchema): readonly string[] {
  const fields = fieldTable(body)
  return [fields === '' ? 'Body: none, or an empty object.' : `Body:\n\n${fields}`]
}

function fieldTable(schema: WireSchema): string {
  const fields = Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, WireSchema>>)
  if (fields.length === 0) return ''
  const required = (schema['required'] ?? []) as readonly string[]
  const rows = fields.map(([name, field]) => {
    const must = required.includes(name) ? ', required' : ''
    return `| \`${name}\` | ${codeCell(schemaText(field))}${must} | ${cell(String(field['description'] ?? ''))} |`
  })
  return `| field | type | means |\n|---|---|---|\n${rows.join('\n')}`
}

/** A schema as a TypeScript type. Bounds are left to the OpenAPI document. */
function schemaText(schema: WireSchema): string {
  const { type, anyOf, items, properties, enum: words } = schema
  if (Array.isArray(words)) return words.map((word) => `'${String(word)}'`).join(' | ')
  if (Array.isArray(anyOf)) return (anyOf as readonly WireSchema[]).map(schemaText).join(' | ')
  if (type === 'array') return `${schemaText((items ?? {}) as WireSchema)}[]`.replace(/^(.* \| .*)\[\]$/, '($1)[]')
  if (type === 'object' && properties) {
    const fields = Object.entries(properties as Readonly<Record<string, WireSchema>>)
    return `{ ${fields.map(([name, field]) => `${name}: ${schemaText(field)}`).join('; ')} }`
  }
  if (type === 'integer') return 'number'
  return typeof type === 'string' ? type : 'unknown'
}
