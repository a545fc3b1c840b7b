// `terret doctor` on real files.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { examineSessionLog } from '../../src/cli/configure/doctor-command.ts'
import { Harness, type Script, scripted, sqlite } from '../../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-doctor-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A file with one session in it. */
async function kept(name: string, script: Script): Promise<readonly string[]> {
  const file = join(folder, name)
  const store = sqlite(file)
  const harness = new Harness({ model: scripted(script), store })
  const { sessionId } = await harness.run('Look.')
  await harness.close()
  await store.close()
  return ['--session', sessionId, '--store', file]
}

describe('terret doctor', () => {
  it('B-DOCTOR-5: a session with nothing wrong is one line, what each protocol says, and exit code 0', async () => {
    const args = await kept('fine.db', ['Seen.'])
    const before = readFileSync(args[3] ?? '')
    expect(await examineSessionLog(args)).toEqual({
      text: [
        'Nothing is wrong with its 2 messages.',
        'messages: can be sent as it is',
        'responses: can be sent as it is',
        'chat: can be sent as it is',
      ].join('\n'),
      code: 0,
    })
    expect(readFileSync(args[3] ?? '').equals(before)).toBe(true)
  })

  it('B-DOCTOR-6: what had to be mended is one line each and exit code 1; --json has the mended view', async () => {
    const args = await kept('odd.db', [
      {
        calls: [
          { tool: 'gone', id: ' ' },
          { tool: 'no such', id: 'a' },
        ],
      },
      'Done.',
    ])
    const { text, code } = await examineSessionLog(args)
    expect(code).toBe(1)
    expect(text.split('\n')).toEqual([
      expect.stringMatching(/^Event \d+: call \d+\.0 has no id\./) as string,
      expect.stringMatching(/^Event \d+: call \d+\.1 names a tool/) as string,
      'messages: can be sent mended',
      'responses: can be sent mended',
      'chat: can be sent mended',
    ])
    const json = await examineSessionLog([...args, '--json'])
    expect(json.code).toBe(1)
    expect(JSON.parse(json.text)).toMatchObject({
      session: args[1],
      damage: null,
      findings: [{ what: 'blank_id' }, { what: 'odd_name' }],
      view: [{ role: 'user' }, { role: 'assistant', calls: [{}, { tool: 'no_such' }] }, {}, {}, { role: 'assistant' }],
    })
  })

  it('B-DOCTOR-7: a session or a file that is not there is said, and no file is made', async () => {
    const args = await kept('one.db', ['Seen.'])
    await expect(examineSessionLog(['--session', 'nobody', ...args.slice(2)])).rejects.toMatchObject({
      code: 'session_missing',
    })
    const missing = join(folder, 'missing.db')
    await expect(examineSessionLog(['--session', 'x', '--store', missing])).rejects.toThrow(/There is no file/)
    expect(existsSync(missing)).toBe(false)
    await expect(examineSessionLog(['--store', missing])).rejects.toThrow(/--session ID --store FILE/)
    await expect(examineSessionLog([...args, '--wrong'])).rejects.toThrow(/--wrong/)
  })

  it('B-DOCTOR-8: a damaged log is said with the event where it ends, and what stands before it is looked at', async () => {
    const args = await kept('broken.db', ['It was seen from afar.'])
    const [, , , file = ''] = args
    const bytes = readFileSync(file)
    const at = bytes.indexOf('seen from afar')
    bytes[at] = 'k'.charCodeAt(0)
    writeFileSync(file, bytes)
    const { text, code } = await examineSessionLog(args)
    expect(code).toBe(1)
    expect(text).toMatch(/^Event \d+: it is damaged, and nothing after it is read\./)
    expect(JSON.parse((await examineSessionLog([...args, '--json'])).text)).toMatchObject({
      findings: [],
      view: [{ role: 'user' }],
    })
  })
})
