// What the search of the site finds, and how. `processTerm` and `boostDocument` reach the browser as source text: they may use
// nothing that stands outside of them, or the search shows nothing and says nothing. test/site.long.test.ts looks in a browser.
import { readFileSync } from 'node:fs'
import { slug } from '../scripts/reference/markdown.ts'
import { type Page, PARTS } from './pages.ts'

type Section = { readonly anchor?: string; readonly text: string; readonly titles: readonly string[] }

const PAGES: ReadonlyMap<string, Page> = new Map(PARTS.flatMap(({ pages }) => pages).map((each) => [each.path, each]))

/** A section for each heading, and one for each question of the page. `path`: from the root of the repository. */
export function sectionsOf(root: string, path: string): readonly Section[] {
  const text = readFileSync(`${root}/${path}`, 'utf8')
  const found: { anchor?: string; text: string; titles: string[] }[] = []
  const titles: string[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode
    const [, marks = '', heading = ''] = (isCode ? null : /^(#{1,6}) (.+)$/.exec(line)) ?? []
    if (heading === '') {
      const last = found.at(-1)
      // Of the API only the names are searched: their texts would be most of the index.
      if (last && !path.startsWith('docs/reference/api/')) last.text += `${line}\n`
      continue
    }
    titles.splice(marks.length - 1)
    titles.push(heading.replace(/`|\*\*/g, ''))
    found.push({ ...(marks === '#' ? {} : { anchor: slug(heading) }), text: '', titles: [...titles] })
  }
  const anchors = new Set<string>()
  const sections = found.filter(({ anchor = '' }) => !anchors.has(anchor) && anchors.add(anchor))
  const title = found[0]?.titles[0] ?? path
  const questions = PAGES.get(path.replace(/\.md$/, ''))?.questions ?? []
  return [
    ...sections.map((each) => ({ ...each, text: plainText(each.text) })),
    ...questions.map((question, i) => ({ anchor: `question-${i + 1}`, text: question, titles: [title, question] })),
  ]
}

function plainText(text: string): string {
  return text
    .replace(/\]\([^)]*\)/g, ' ')
    .replace(/[`*|[\]]/g, ' ')
    .replace(/\s+/g, ' ')
}

/** One word of a text or of what is looked for, as it is compared; null leaves it out. */
function processTerm(term: string): string | null {
  const stop =
    ' a an the i me my we our you your he she it its is are was were be been am do does did done to of in on at by for from with and or not no so if then than that this these those there here how what when where which who whom why can could should would may might must will shall have has had get gets got one some any all each every into out up as but about also just only very much many more most use using used want need make made does thing things way please terret '
  const word = term.toLowerCase().replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, '')
  if (word === '' || stop.includes(` ${word} `)) return null
  const stem = (each: string): string => {
    if (each.includes('_') || each.length < 4) return each
    let s = each.replace(/(?:'s|’s)$/, '')
    s = s.replace(/ies$/, 'y').replace(/(ss|sh|ch|x)es$/, '$1')
    if (!/(ss|us|is)$/.test(s)) s = s.replace(/s$/, '')
    if (s.length > 5) s = s.replace(/(?:ing|ed)$/, '').replace(/([bdgmnprt])\1$/, '$1')
    return s.length > 4 ? s.replace(/e$/, '') : s
  }
  // Words of one line are found by each other.
  const same = [
    'human person people somebody someone user-in-the-loop reviewer manager',
    'cost money dollar usd spend spent spending price pay bill budget expensive cheap euro cent',
    'payment charge charged refund',
    'llm model gpt',
    'erase delete remove wipe gdpr forget',
    'cron nightly night daily schedule scheduled recurring periodic morning weekly hourly',
    'local laptop ollama offline self-hosted selfhosted llama.cpp lmstudio',
    'crash crashes die dies died dying killed kill kills restart restarts reboot outage-of-power',
    'approve approval approvals confirm confirmation permission consent accept sign-off',
    'customer tenant tenants customers multi-tenant organisation organization client-data',
    'server servers machine machines host hosts worker workers instance instances replica replicas pod pods',
    'test tests testing tested mock mocks fake stub',
    'remember memory memories recall learn',
    'stop cancel abort interrupt halt',
    'loop loops endless forever infinite runaway stuck',
    'resume continue',
    'chat chatbot conversation conversations dialog thread threads',
    'webhook webhooks event-from-outside callback-url',
    'json schema structured zod',
    'parallel concurrent concurrently simultaneous',
    'secret secrets password passwords credential credentials apikey',
    'error errors exception failure fault',
    'twice duplicate duplicates double doubled again-and-again',
    'install installation setup installing',
    'deploy deployment production kubernetes docker container',
    'replay rerun reproduce',
    'screen ui frontend interface dashboard',
    'log logs history audit',
    'stream streaming',
    'database db storage persist persistence sqlite postgres postgresql',
  ]
  const stemmed = stem(word)
  for (const line of same) {
    const words = line.split(' ').map(stem)
    if (words.includes(stemmed)) return words[0] ?? stemmed
  }
  return stemmed
}

/** Guides come before reference, and both before measurements. */
function boostDocument(id: string): number {
  if (id.includes('/reference/api/')) return 0.25
  if (/\/(benchmarks|scale|tour|reliability|glossary|contract)\b/.test(id)) return 0.3
  if (id.includes('/reference/errors')) return 0.9
  if (/\/reference\/|\/guide\/cli\b/.test(id)) return 0.5
  return id.includes('#question-') ? 1.6 : 1
}

export const MINI_SEARCH = {
  options: { processTerm },
  searchOptions: { processTerm, boostDocument, boost: { title: 6, titles: 2, text: 1 }, fuzzy: 0.15, prefix: true },
}
