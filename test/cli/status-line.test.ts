// The row above the prompt of a chat: its parts, what is left out where it is narrow, and the branch.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ChatStatus, fitStatus, readBranch, statusParts } from '../../src/cli/chat/status-line.ts'
import { widthOf } from '../../src/cli/present/terminal-text.ts'

const STATUS: ChatStatus = {
  model: 'fake:m',
  mode: 'ask',
  folder: '/home/ana/p',
  home: '/home/ana',
  branch: 'main',
  context: { tokens: 1_200, window: 10_000 },
  spent: 30_000,
  limitUsd: 2,
  children: 2,
  background: 0,
  queued: 1,
}
const row = (change: Partial<ChatStatus>, columns = 100): string =>
  fitStatus(statusParts({ ...STATUS, ...change }), columns)

describe('the status row', () => {
  it('B-CLI-360: it names model, mode, folder and branch, context, money, children and queued messages', () => {
    expect(row({})).toBe('fake:m · ask · ~/p (main) · ctx 12 % · $0.0300 of $2 · 2 agents work · 1 queued')
    expect(row({ branch: null, context: null, children: 0, queued: 0, spent: 0, limitUsd: null })).toBe(
      'fake:m · ask · ~/p',
    )
  })

  it('B-CLI-346: it names the commands in the background', () => {
    expect(row({ background: 2 }, 120)).toContain(' · 2 in the background · 1 queued')
  })

  it('B-CLI-360: money beyond the limit was allowed by a person, so the limit is not named', () => {
    expect(row({ spent: 2_500_000 })).toContain(' · $2.50 · ')
  })

  it('B-CLI-361: what matters least is left out first, and no width is too small', () => {
    expect(row({}, 60)).toBe('ask · ctx 12 % · $0.0300 of $2 · 2 agents work · 1 queued')
    expect(row({}, 20)).toBe('ask · 1 queued')
    for (let columns = 4; columns < 120; columns++) expect(widthOf(row({}, columns))).toBeLessThanOrEqual(columns)
  })

  it('B-CLI-360: a name of a folder, a branch or a model cannot write to the terminal', () => {
    const evil = '\u001b[2Jx\n\u0007'
    const shown = row({ folder: `/${evil}`, branch: evil, model: evil })
    expect(shown).not.toMatch(/\p{Cc}/u)
    expect(shown).toContain('[2Jx')
  })
})

describe('the branch', () => {
  const repository = (head: string): string => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-branch-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    mkdirSync(join(folder, '.git'))
    mkdirSync(join(folder, 'deep', 'er'), { recursive: true })
    writeFileSync(join(folder, '.git', 'HEAD'), head)
    return folder
  }

  it('B-CLI-362: it is read from the HEAD of the repository above, of a worktree too, without a process', () => {
    const folder = repository('ref: refs/heads/feat/x\n')
    expect(readBranch(join(folder, 'deep', 'er'))).toBe('feat/x')
    writeFileSync(join(folder, 'deep', '.git'), 'gitdir: ../.git/worktrees/deep\n')
    mkdirSync(join(folder, '.git', 'worktrees', 'deep'), { recursive: true })
    writeFileSync(join(folder, '.git', 'worktrees', 'deep', 'HEAD'), 'ref: refs/heads/other\n')
    expect(readBranch(join(folder, 'deep', 'er'))).toBe('other')
  })

  it('B-CLI-362: a commit is named by its beginning, and a HEAD that is none is no branch', () => {
    expect(readBranch(repository(`${'a1'.repeat(20)}\n`))).toBe('a1a1a1a')
    expect(readBranch(repository('nonsense'))).toBe(null)
    expect(readBranch(repository(''))).toBe(null)
  })
})
