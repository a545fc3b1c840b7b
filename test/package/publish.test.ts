// What a maintainer needs to publish: the addresses, the workflows, the pages for strangers and the notes of a release. What npm says of the
// package itself is publish.long.test.ts.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { changesOf } from '../../scripts/changes-of.ts'
import { SITE } from '../../src/kernel/addresses.ts'
import { readTexts, repository } from '../tidy/source.ts'

type Manifest = {
  readonly homepage: string
  readonly bugs: string
  readonly repository: { readonly url: string }
  readonly engines: { readonly node: string }
  readonly scripts: Readonly<Record<string, string>>
}
type Step = { readonly run?: string; readonly uses?: string }
type Job = {
  readonly 'runs-on': string
  readonly 'timeout-minutes'?: number
  readonly permissions?: Readonly<Record<string, string>>
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps: readonly Step[]
}
type Workflow = { readonly permissions: Readonly<Record<string, string>>; readonly jobs: Readonly<Record<string, Job>> }

const read = (...path: readonly string[]): string => readFileSync(join(repository, ...path), 'utf8')
const manifest = JSON.parse(read('package.json')) as Manifest
const ci = parse(read('.github/workflows/ci.yml')) as Workflow
const nightly = parse(read('.github/workflows/nightly.yml')) as Workflow
const release = parse(read('.github/workflows/release.yml')) as Workflow
const linesOf = ({ jobs }: Workflow): readonly string[] =>
  Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run.split('\n')))

describe('the addresses', () => {
  it('B-PUB-1: where the project lives stands in the manifest, with the place for reports, and once in the code', () => {
    const place = manifest.homepage.replace('https://', '')
    expect(manifest.bugs).toBe(`https://${place}/issues`)
    expect(manifest.repository.url).toBe(`git+https://${place}.git`)
    const naming = readTexts('.').filter(({ text }) => text.includes(place))
    expect(naming.map(({ path }) => path)).toEqual(['package.json', 'src/kernel/addresses.ts'])
    expect(SITE).toBe(manifest.homepage)
  })
})

describe('the workflows', () => {
  it('B-PUB-2: each change is tested on Node 20, 22 and 24 on Linux, and in part on macOS', () => {
    const [oldest = ''] = /\d+/.exec(manifest.engines.node) ?? []
    const matrices = Object.values(ci.jobs).flatMap((job) => {
      return job.strategy ? [{ system: job['runs-on'].split('-')[0], node: job.strategy.matrix.node }] : []
    })
    expect(matrices).toEqual([
      { system: 'ubuntu', node: [Number(oldest), 22, 24] },
      { system: 'macos', node: [Number(oldest), 24] },
    ])
    expect(linesOf(ci)).toContain('.ci/run')
  })

  it('B-PUB-2: they run what there is: scripts of the manifest, and tests that exist', () => {
    for (const line of [...linesOf(ci), ...linesOf(nightly), ...linesOf(release)]) {
      const [, script] = /npm run (?:-s |--silent )?([\w:]+)/.exec(line) ?? []
      if (script !== undefined) expect(manifest.scripts).toHaveProperty([script])
      for (const [path] of line.matchAll(/\btest\/\S+/g)) expect(existsSync(join(repository, path))).toBe(true)
    }
  })

  it('B-PUB-3: a tag publishes with provenance and without a token, after its tests; no other job may write', () => {
    const lines = linesOf(release)
    const at = (part: string): number => lines.findIndex((line) => line.includes(part))
    expect(at('npm publish --provenance')).toBeGreaterThan(
      Math.max(at('npm test'), at('npm run check'), at('release:notes')),
    )
    expect(release.jobs['publish']?.permissions).toEqual({ 'id-token': 'write', contents: 'write' })
    expect(JSON.stringify(release)).not.toContain('secrets.')
    for (const workflow of [ci, release]) {
      expect(workflow.permissions).toEqual({ contents: 'read' })
      for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0)
    }
    for (const job of Object.values(ci.jobs)) expect(job.permissions).toBeUndefined()
  })
})

describe('the notes of a release', () => {
  const log = '# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.0] - 2027-01-05\n\n- A line.\n\n## [1.1.0]\n'

  it('B-PUB-4: are what the changelog says of the version', () => {
    expect(changesOf(log, 'v1.2.0', '1.2.0')).toBe('## [1.2.0] - 2027-01-05\n\n- A line.\n\n')
  })

  it.each([
    ['v1.2.1', '1.2.0', 'The tag v1.2.1 is not v1.2.0'],
    ['v1.3.0', '1.3.0', 'has no section "## [1.3.0]"'],
    ['v1.1.0', '1.1.0', 'is empty'],
  ])('B-PUB-4: the tag %s of a package %s is refused: %s', (tag, version, why) => {
    expect(() => changesOf(log, tag, version)).toThrow(why)
  })
})

describe('what strangers find', () => {
  it('B-PUB-5: forms for reports ask for what is needed, and send security problems elsewhere', () => {
    const folder = '.github/ISSUE_TEMPLATE'
    const forms = readdirSync(join(repository, folder)).filter((name) => name !== 'config.yml')
    for (const form of forms) {
      const { name, description, body } = parse(read(folder, form)) as Readonly<Record<string, unknown>>
      expect([typeof name, typeof description]).toEqual(['string', 'string'])
      const ids = (body as readonly { readonly id?: string }[]).flatMap(({ id }) => id ?? [])
      expect(new Set(ids).size).toBe(ids.length)
    }
    expect(read(folder, 'bug.yml')).toMatch(/SECURITY\.md[^]*terret export[^]*terret doctor/)
  })

  it('B-PUB-6: the support policy names the versions of Node that are tested, and what a release may change in logs', () => {
    const page = read('SUPPORT.md')
    expect(page).toContain(manifest.engines.node.replace('>=', ''))
    expect(page).toMatch(/20, 22 and 24[^]*## Versions[^]*## Logs/)
    expect(read('CODE_OF_CONDUCT.md')).toContain('SECURITY.md')
  })
})
