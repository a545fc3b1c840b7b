// The public surface of each entry as text, without its comments: api/terret-tools.txt and so on. A change of it is a change for users,
// so it stands in the commit that makes it, and `git diff v1.2.2 v1.2.3 -- api` is all that a release changes in types.
import type { Entry, Member, PublicName } from './api-reader.ts'

/** Where the reports are, from the root of the repository. */
export const REPORTS = 'api'

/** The text of each report by its path in `REPORTS`. */
export function apiReports(entries: readonly Entry[]): ReadonlyMap<string, string> {
  return new Map(entries.map((entry) => [`${entry.name.replaceAll('/', '-')}.txt`, report(entry)]))
}

function report({ name, own, shared }: Entry): string {
  const others = shared.map((each) => [each.name, `${each.name}: as ${each.as} of ${each.entry}`] as const)
  const texts = [...own.map((each) => [each.name, declared(each)] as const), ...others]
  const sorted = texts.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  return `import from '${name}'. Written by: npm run reference\n\n${sorted.join('\n\n')}\n`
}

function declared({ name, kind, code, members }: PublicName): string {
  const head = code === '' ? `${kind} ${name}` : code
  return [head, ...members.map(line)].join('\n')
}

function line({ name, isOptional, type }: Member): string {
  return `  ${name}${isOptional ? '?' : ''}: ${type.replace(/\s*\n\s*/g, ' ')}`
}
