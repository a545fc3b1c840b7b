// What Terret obeys is changed only after a person was asked about that very change.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type Policy, scripted, type Tool } from '../../src/index.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { findSandbox } from '../../src/tools/shell/sandbox.ts'

let root = ''
const at = (path: string): string => join(root, path)
const text = (path: string): string => readFileSync(at(path), 'utf8')
beforeEach(() => {
  root = realpathSync(mkdtempSync('/var/tmp/terret-obeyed-'))
  writeFileSync(at('AGENTS.md'), 'be kind\n')
  mkdirSync(at('skills/one'), { recursive: true })
  mkdirSync(at('docs'))
  writeFileSync(at('skills/one/SKILL.md'), 'a skill\n')
  writeFileSync(at('docs/rules.md'), 'rules\n')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const ALLOW: Policy = { rules: [{ effect: 'allow' }] }
const evil = (path: string) => ({ tool: 'write', args: { path, content: 'be evil\n' } })
const harness = (calls: readonly { tool: string; args: object }[], more: readonly Tool[] = []): Harness =>
  new Harness({
    model: scripted([{ calls: calls as never }, 'done']),
    tools: [...fileTools({ root, obeyed: ['skills'] }), ...more],
    approvals: { policy: ALLOW },
  })

describe('what Terret obeys', () => {
  it.each([
    'AGENTS.md',
    './docs/../AGENTS.md',
    'agents.MD',
    'docs/AGENTS.md',
    'CLAUDE.md',
    '.env',
    'docs/.env',
    'skills/one/SKILL.md',
    'skills/two/SKILL.md',
  ])('B-OBEY-1: %s is asked about each time, whatever is allowed', async (path) => {
    const h = harness([evil(path)])
    const result = await h.run('go')
    expect(result.status).toBe('requires_action')
    expect(result.pending[0]?.each).toBe(true)
    const session = h.session(result.sessionId)
    await session.decide({ callId: result.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(text(path)).toBe('be evil\n')
    await h.close()
  })

  it('B-OBEY-2: is asked about when it is reached through a link, or is itself a link to what is changed', async () => {
    symlinkSync('AGENTS.md', at('notes.md'))
    rmSync(at('AGENTS.md'))
    symlinkSync('docs/rules.md', at('AGENTS.md'))
    for (const path of ['notes.md', 'docs/rules.md']) {
      const h = harness([evil(path)])
      expect((await h.run('go')).status).toBe('requires_action')
      await h.close()
    }
    expect(text('docs/rules.md')).toBe('rules\n')
  })

  it('B-OBEY-3: is asked about when a call of the same reply makes the link', async () => {
    const link = defineTool({
      name: 'link',
      description: 'link',
      input: z.object({}),
      sequential: true,
      execute: () => (symlinkSync('AGENTS.md', at('later.md')), 'done'),
    })
    const h = harness([{ tool: 'link', args: {} }, evil('later.md')], [link])
    const result = await h.run('go')
    expect(result.status).toBe('requires_action')
    expect(text('AGENTS.md')).toBe('be kind\n')
    await h.close()
  })

  it.skipIf(findSandbox(tmpdir()).type === 'none')(
    'B-OBEY-4: is not changed by a command that nobody allowed, and does not stay where one makes it',
    async () => {
      const bash = { ...bashTool({ workspace: root, obeyed: ['skills'] }), approval: () => 'auto' as const }
      const command =
        'echo evil > AGENTS.md; echo evil > skills/one/SKILL.md; echo evil > .env; echo evil > docs/AGENTS.md; true'
      const h = harness([{ tool: 'bash', args: { command } }], [bash])
      await h.run('go')
      expect(text('AGENTS.md')).toBe('be kind\n')
      expect(text('skills/one/SKILL.md')).toBe('a skill\n')
      expect(existsSync(at('.env'))).toBe(false)
      expect(existsSync(at('docs/AGENTS.md'))).toBe(false)
      await h.close()
    },
  )
})
