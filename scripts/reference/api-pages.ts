// docs/reference/api and docs/reference/events.md: a page for each entry of the package, `terret` split by subject. Text only.
import { readFileSync } from 'node:fs'
import type { Entry, Member, PublicName } from './api-reader.ts'
import { cell, codeCell, paragraph, slug } from './markdown.ts'

type ApiPage = {
  /** Without `.md`. */
  readonly path: string
  readonly title: string
  readonly entry: Entry
  readonly names: readonly PublicName[]
  readonly about: string
}
/** Where each name of an entry has its section: `terret Fault` to `terret-runs.md#fault`. */
type Places = ReadonlyMap<string, string>

/** The names of `terret` by where they are declared; the first line that fits counts. */
const SUBJECTS: readonly {
  readonly page: string
  readonly title: string
  readonly about: string
  readonly of: RegExp
}[] = [
  {
    page: 'terret-models',
    title: 'terret: models',
    about: 'Models, their settings and prices, and what stands in for them in tests.',
    of: /^src\/(models\/|ports\/model)/,
  },
  {
    page: 'terret-tools',
    title: 'terret: tools',
    about: 'Tools of your own, policies, secrets and schemas.',
    of: /^src\/tools\//,
  },
  { page: 'terret-stores', title: 'terret: stores', about: 'Where sessions are kept.', of: /^src\/(stores\/|ports\/)/ },
  {
    page: 'terret-harness',
    title: 'terret: the harness and its sessions',
    about: 'The harness, its options, and everything that is done with a session.',
    of: /^src\/(harness|session|sessions\/)/,
  },
  {
    page: 'terret-runs',
    title: 'terret: runs',
    about: 'What runs come to: results, events, failures, and the hooks that see them.',
    of: /./,
  },
]

/** The text of each page by its path in docs/reference. */
export function apiPages(root: string, entries: readonly Entry[]): ReadonlyMap<string, string> {
  const pages = entries.flatMap((entry) => pagesOf(root, entry))
  const places = placesOf(pages)
  const texts = pages.map((page) => [`api/${page.path}.md`, pageText(page, places)] as const)
  return new Map([...texts, ['README.md', indexText(pages)], ['events.md', eventsText(entries)]])
}

function pagesOf(root: string, entry: Entry): readonly ApiPage[] {
  if (entry.name !== 'terret') {
    const path = entry.name.replaceAll('/', '-')
    return [{ path, title: entry.name, entry, names: entry.own, about: headOf(root, entry.file) }]
  }
  const left = [...entry.own]
  return SUBJECTS.map(({ page, title, about, of }) => {
    const names = left.filter(({ file }) => of.test(file))
    for (const name of names) left.splice(left.indexOf(name), 1)
    return { path: page, title, entry, names, about }
  })
}

/** The comment that a file begins with. */
function headOf(root: string, file: string): string {
  const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join(' ')
}

function placesOf(pages: readonly ApiPage[]): Places {
  return new Map(
    pages.flatMap(({ path, entry, names }) => {
      const anchors = anchorsOf(names)
      return names.map(({ name }) => [`${entry.name} ${name}`, `${path}.md#${anchors.get(name) ?? ''}`] as const)
    }),
  )
}

/** The address of each name in its page. `Model` and `model` have the same one but for a number, as GitHub counts. */
function anchorsOf(names: readonly PublicName[]): ReadonlyMap<string, string> {
  const counts = new Map<string, number>()
  return new Map(
    names.map(({ name }) => {
      const first = slug(name)
      const count = counts.get(first) ?? 0
      counts.set(first, count + 1)
      return [name, count === 0 ? first : `${first}-${count}`]
    }),
  )
}

function pageText({ title, entry, names, about }: ApiPage, places: Places): string {
  const isSplit = entry.name === 'terret'
  const shared = isSplit ? '' : sharedText(entry, places)
  const index = [...anchorsOf(names)].map(([name, anchor]) => `[\`${name}\`](#${anchor})`).join(' · ')
  return `# ${title}

${paragraph(about)}

\`\`\`ts
import { ${names.find(({ kind }) => kind !== 'type')?.name ?? '…'} } from '${entry.name}'
\`\`\`

${index}
${shared}
${names.map(nameText).join('\n\n')}
`
}

function sharedText({ shared }: Entry, places: Places): string {
  if (shared.length === 0) return ''
  const links = shared.map(({ name, entry, as }) => `[\`${name}\`](${places.get(`${entry} ${as}`) ?? ''})`)
  return `\nAlso exported here, and told elsewhere: ${links.join(' · ')}\n`
}

function nameText({ name, says, code, members }: PublicName): string {
  const parts = [
    `## ${name}`,
    ...(says === '' ? [] : [paragraph(says)]),
    ...(code === '' ? [] : [`\`\`\`ts\n${code}\n\`\`\``]),
    ...(members.length === 0 ? [] : [memberTable(members)]),
  ]
  return parts.join('\n\n')
}

function memberTable(members: readonly Member[]): string {
  const rows = members.map(({ name, isOptional, type, says }) => {
    return `| \`${name}${isOptional ? '?' : ''}\` | ${codeCell(type)} | ${cell(says)} |`
  })
  return `| name | type | means |\n|---|---|---|\n${rows.join('\n')}`
}

function indexText(pages: readonly ApiPage[]): string {
  const rows = pages.map(
    ({ path, title, about, names }) => `| [${title}](api/${path}.md) | ${cell(about)} | ${names.length} |`,
  )
  return `# Reference

Everything that can be named, made from the source: the API, the configuration file, commands, events, errors and routes.

| page | what it has |
|---|---|
| [Configuration file](configuration.md) | every setting of \`config.json\` |
| [Commands](commands.md) | every command of \`terret\`, with its flags |
| [Events](events.md) | every event of a log, with its fields |
| [Errors](errors.md) | every code, with its cause and what to do; exit codes |
| [Routes](routes.md) | every route of a server |
| [Glossary](../glossary.md) | the words that code and pages use |

## API

Each entry of the package is a page; \`terret\` itself is several. A name is told where it belongs, and other entries that export it too have a link.

| entry | what it is for | names |
|---|---|---|
${rows.join('\n')}
`
}

/** The events of a log, as their types and the comments in them tell it. */
function eventsText(entries: readonly Entry[]): string {
  const names = entries.find(({ name }) => name === 'terret/kernel')?.own ?? []
  const events = names.flatMap((each) => {
    const type = each.members.find(({ name }) => name === 'type')?.type ?? ''
    const word = /^'([a-z]+\.[a-z_]+)'$/.exec(type)?.[1]
    return word === undefined || each.file !== 'src/kernel/event.ts' ? [] : [{ word, each }]
  })
  const envelope = names.find(({ name }) => name === 'Envelope')
  const index = events.map(({ word, each }) => `| [\`${word}\`](#${slug(word)}) | ${cell(each.says)} |`)
  const sections = events.map(({ word, each }) => {
    const fields = each.members.filter(({ name }) => name !== 'type')
    return `## ${word}\n\n${paragraph(each.says)}${fields.length === 0 ? '\n\nIt has no fields of its own.' : `\n\n${memberTable(fields)}`}`
  })
  return `# Events

Every event that can stand in the log of a session, with its fields.

Names that begin with \`user.\` are of the inbox: anyone may append them, in any order. The others are written only by the worker that holds the session. What they mean is [the fold](../tour.md); \`harness.events(id)\` and \`terret history ID\` read a log. Types of fields are in [\`terret/kernel\`](api/terret-kernel.md).

| event | what it says |
|---|---|
${index.join('\n')}

## Fields of every event

${memberTable(envelope?.members ?? [])}

${sections.join('\n\n')}
`
}
