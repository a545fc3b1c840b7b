// What npm and a reader of releases get to see of the package. The workflows and pages around it are publish.test.ts.
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { packageReport, reportEntries } from '../../scripts/package-report.ts'
import { root } from './packed.ts'

const TIMEOUT = { timeout: 300_000 }

it('B-PUB-7: npm would publish it as it is, without correcting or warning', TIMEOUT, () => {
  const args = ['publish', '--dry-run', '--ignore-scripts', '--provenance=false']
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8' })
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\+ terret@/m) as string })
  // That nobody is logged in here is no fault of the package.
  const warnings = stderr
    .split('\n')
    .filter((line) => /^npm (warn|error) publish/.test(line) && !line.includes('logged in'))
  expect(warnings).toEqual([])
  for (const path of [
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'SECURITY.md',
    'SUPPORT.md',
    'templates/agent/package.json',
  ])
    expect(stderr).toContain(` ${path}\n`)
  expect(stderr).not.toMatch(/ (?:test|src|\.github|node_modules|templates\/\w+\/node_modules)\//)
})

it('B-PUB-8: the report of a release has the size and the public names of each entry', TIMEOUT, async () => {
  const entries = reportEntries(root)
  expect(entries.length).toBeGreaterThan(20)
  for (const { entry, files, bytes, names } of entries)
    expect([entry, files > 0, bytes > 1_000, names.length > 0]).toEqual([entry, true, true, true])
  const library = entries.find(({ entry }) => entry === 'terret')
  expect(library?.names).toEqual(expect.arrayContaining(['Harness', 'defineTool', 'scripted', 'type Session']))
  const report = await packageReport(root)
  expect(report).toMatch(
    /^## Terret \d+\.\d+\.\d+: size and names\n[^]*packed [\d,]+ kB[^]*\d+ instantiations[^]*\| `terret\/cron` \|/,
  )
})
