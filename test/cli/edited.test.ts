// Approving a call with other arguments at the command line: the flag, what is shown before and after, and what a person edits at a prompt.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Asker, askApproval } from '../../src/cli/present/ask-approval.ts'
import { editInEditor } from '../../src/cli/present/external-editor.ts'
import type { FolderSetup } from '../../src/cli/state/folder-setup.ts'
import type { Pending } from '../../src/index.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()
const write = { calls: [{ tool: 'write', args: { path: 'a', content: 'x' } }] }

describe('terret approve --args', () => {
  it('B-EDITED-12: runs the call with these arguments; pending, history, inspect and the exported page show what changed', async () => {
    await scriptedBy([write, 'Done.'])
    await stage.terret('run', 'Write.')
    const bad = await stage.terret('approve', 'latest', '--by', 'bob', '--args', '{"path":')
    expect([bad.code, lastLine(bad.err)]).toEqual([2, expect.stringContaining('no JSON')])
    const wrong = await stage.terret('approve', 'latest', '--by', 'bob', '--args', '{"path":5,"content":"x"}')
    expect([wrong.code, lastLine(wrong.err)]).toEqual([2, expect.stringContaining('cannot be edited like this')])
    const args = '{"path":"b","content":"y"}'
    const done = await stage.terret('approve', 'latest', '--by', 'bob', '--args', args, '--resume')
    expect([done.code, done.err]).toEqual([0, expect.stringContaining('edited by bob:')])
    expect(existsSync(join(stage.folder, 'a'))).toBe(false)
    expect(readFileSync(join(stage.folder, 'b'), 'utf8')).toBe('y')
    const changes = 'path: "a" → "b", content: "x" → "y"'
    expect((await stage.terret('history', 'latest')).out).toContain(`with other arguments (${changes}) by bob`)
    expect((await stage.terret('inspect', 'latest')).out).toContain(`yes (bob), edited by bob: ${changes}`)
    const page = (await stage.terret('export', 'latest', '--format', 'md')).out
    expect(page).toMatch(/was edited and allowed by bob\.\*[\s\S]*-  "path": "a",?[\s\S]*\+  "path": "b"/)
  })
})

describe('a prompt for an approval', () => {
  const pending = {
    callId: '5.0',
    tool: 'write',
    args: { cents: 500 },
    needs: 'approval',
    digest: 'd',
    sessionId: 's',
    path: ['s'],
    each: true,
  } as unknown as Pending
  const setup = { settings: {}, policy: { rules: [] }, tools: [] } as unknown as FolderSetup
  const asking = { setup, session: 's', by: 'bob', kept: [] }

  function asker(words: readonly string[], edits: readonly (string | null)[]) {
    const [said, written, shown, notes] = [[...words], [...edits], [] as Pending[], [] as string[]]
    const person: Asker = {
      read: async () => said.shift() ?? null,
      note: (text) => void notes.push(text),
      show: async (each) => {
        shown.push(each)
        return false
      },
      reason: null,
      edit: async () => written.shift() ?? null,
    }
    return { person, shown, notes }
  }

  it('B-EDITED-13: e edits the arguments, shows the call with the difference, and asks again', async () => {
    const { person, shown } = asker(['e', 'y'], ['{"cents": 50}'])
    expect(await askApproval(person, asking, pending)).toEqual({ allow: true, args: { cents: 50 } })
    expect(shown.at(-1)).toMatchObject({ args: { cents: 50 }, edited: { by: 'bob', args: { cents: 500 } } })
  })

  it('B-EDITED-13: what is no JSON, or nothing, leaves the call as it was asked', async () => {
    const { person, notes } = asker(['e', 'e', 'e', 'y'], ['{"cents":', '', '{ "cents": 500 }'])
    expect(await askApproval(person, asking, pending)).toEqual({ allow: true })
    expect(notes.join('\n')).toContain('no JSON')
  })

  it('B-EDITED-13: an editor of the person changes a file, and one that fails changes nothing', () => {
    expect(editInEditor('{"a":1}', { EDITOR: 'sed -i s/1/2/' })).toBe('{"a":2}\n')
    expect(editInEditor('{"a":1}', { EDITOR: 'false' })).toBeNull()
    expect(editInEditor('{"a":1}', {})).toBeNull()
  })
})
