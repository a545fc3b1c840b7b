// What came of a call, as people read it. Pure; the terminal shows it in terminal-outcome.long.test.ts.
import { describe, expect, it } from 'vitest'
import { ChatCalls, finishedRows, foldedLine } from '../../src/cli/chat/chat-calls.ts'
import { createPaint, widthOf } from '../../src/cli/present/terminal-text.ts'
import { outcomeOf, outcomeText, failureTail, type ToolResult } from '../../src/cli/present/outcome.ts'
import type { Event, Json } from '../../src/kernel/index.ts'

function ran(stdout: string, stderr: string, metadata: { readonly [key: string]: Json }): ToolResult {
  const content = JSON.stringify({ command: 'x', shell: '/bin/bash', stdout, stderr, success: false })
  return { status: 'ok', content, metadata: { exit_code: 0, timed_out: false, ...metadata } }
}

const numbers = (count: number): string => `${Array.from({ length: count }, (_, i) => `n${i + 1}`).join('\n')}\n`
const paint = createPaint(false)

describe('what came of a call', () => {
  it.each([
    [ran(numbers(30), '', {}), true, '30 lines'],
    [ran(numbers(30), 'oops\n', { exit_code: 3 }), false, 'exit 3 · 31 lines'],
    [ran('', '', { exit_code: 137 }), false, 'exit 137 · 0 lines'],
    [ran('a\n', '', { exit_code: null, timed_out: true }), false, 'timed out, output cut · 1 line'],
    [ran('a', '', { exit_code: null, error_type: 'Interrupted' }), false, 'stopped, output cut · 1 line'],
    [ran('a', '', { exit_code: 4, stdout_lines: 20_000 }), false, 'exit 4 · 20,000 lines'],
    [
      ran('a', '', { exit_code: 0, stdout_lines: 9, stdout_bytes: 50, stdout_blob: { hash: 'h', bytes: 20 } }),
      true,
      'over 9 lines',
    ],
  ])('B-SHOW-1, B-SHOW-2: a command is shown by its exit code and the lines it printed (%#)', (result, good, text) => {
    const outcome = outcomeOf(result)
    expect([outcome.good, outcomeText(outcome)]).toEqual([good, text])
  })

  it.each([
    ['the streams are shorter, and a line after them says so', (json: string) => `${json}\n[PARTIAL view, …]`],
    ['only a part of the JSON is left', (json: string) => json.slice(0, 60)],
  ])(
    'B-SHOW-9: a failed command whose result was made shorter is shown as failed, with all its lines: %s',
    (_how, cut) => {
      const compressed = { blob: 'h', bytes: 90_000 }
      const result = ran(numbers(3), '', { exit_code: 2, stdout_lines: 1_200, stderr_lines: 1, compressed })
      const outcome = outcomeOf({ ...result, content: cut(result.content as string) })
      expect([outcome.good, outcomeText(outcome), outcome.original]).toEqual([false, 'exit 2 · 1,201 lines', 'h'])
    },
  )

  it('B-SHOW-9: any other result that was made shorter has the size of the whole', () => {
    const outcome = outcomeOf({ status: 'ok', content: 'a', metadata: { summarized: { blob: 'h', bytes: 90_000 } } })
    expect([outcomeText(outcome), outcome.original]).toEqual(['90000 bytes', 'h'])
  })

  it('B-SHOW-1: of a command that failed the last lines are shown, errors last, each on one safe row', () => {
    const failed = outcomeOf(ran(numbers(30), 'e1\n\u001b[2Joops\n', { exit_code: 3 }))
    expect(failureTail(failed, 20)).toEqual([
      '  ┊ 26 lines before these',
      ...['n27', 'n28', 'n29', 'n30', 'e1', '\\u{1b}[2Joops'].map((line) => `  │ ${line}`),
    ])
    const wide = failureTail(outcomeOf(ran(`${'x'.repeat(90_000)}\n`, '', { exit_code: 1 })), 40)
    expect(wide.map(widthOf)).toEqual([40])
    expect(failureTail(outcomeOf(ran(numbers(7), '', { exit_code: 1 })), 40)).toHaveLength(7)
    expect(failureTail(outcomeOf(ran(numbers(2), numbers(5), { exit_code: 1 })), 40)).toHaveLength(7)
    expect(failureTail(outcomeOf(ran(numbers(30), '', {})), 40)).toEqual([])
  })

  it.each<[ToolResult, string]>([
    [{ status: 'ok', content: 'not JSON', metadata: { exit_code: 3 } }, '1 line'],
    [{ status: 'ok', content: '{"stdout":5,"stderr":""}', metadata: { exit_code: 3 } }, '1 line'],
    [{ status: 'ok', content: '[]', metadata: ['exit_code'] }, '1 line'],
    [
      { status: 'ok', content: '{"stdout":"a","stderr":""}', metadata: { exit_code: { $: 1 } } },
      'no exit code · 1 line',
    ],
    [
      { status: 'ok', content: '{"stdout":"a","stderr":""}', metadata: { exit_code: 0, stdout_lines: 'many' } },
      '1 line',
    ],
    [
      { status: 'ok', content: { type: 'blob', hash: 'h', bytes: 7, media: 'text/plain' }, metadata: { exit_code: 3 } },
      '7 bytes',
    ],
    [{ status: 'error', content: 'x', failure: { kind: 'Failed', message: 'no \u001b[2J' } }, 'error: no \\u{1b}[2J'],
  ])('B-SHOW-8: fields that no command gives are not believed (%#)', (result, text) => {
    expect(outcomeText(outcomeOf(result))).toBe(text)
  })
})

describe('the calls of a session', () => {
  const envelope = { at: 0, epoch: 1 }
  const proposed = (seq: number, tool: string, command: string): Event => ({
    ...envelope,
    seq,
    type: 'agent.message',
    parts: [],
    calls: [{ id: `c${seq}`, tool, args: { command }, effect: 'once', timeoutMs: 1 }],
    verdict: { type: 'continue' },
  })
  const ended = (seq: number, call: string, result: ToolResult): Event => {
    return { ...envelope, seq, type: 'agent.tool_result', call, ...result }
  }

  it('B-SHOW-3: what came of a call is seen however long the call is', () => {
    const calls = new ChatCalls()
    const events = [proposed(1, 'bash', `echo ${'x'.repeat(300)}`), ended(2, '1.0', ran('', '', { exit_code: 3 }))]
    calls.recall('s', events)
    const [call] = calls.all
    const line = call ? foldedLine(call, { paint, width: 79, mark: '' }) : ''
    expect([widthOf(line), line]).toEqual([79, expect.stringMatching(/^ {2}✗ bash echo x+… · exit 3 · 0 lines #1$/)])
  })

  it('B-SHOW-5: calls are numbered by the log, those of a child below the call it works for', () => {
    const calls = new ChatCalls()
    const ok = ran('a\n', '', {})
    calls.recall('s', [proposed(1, 'subagent', 'look'), proposed(3, 'bash', 'two'), ended(4, '3.0', ok)])
    calls.recall('s~1.0', [proposed(1, 'bash', 'below'), ended(2, '1.0', ok)], { session: 's', call: '1.0' })
    expect(calls.all.map(({ number, status }) => [number, status])).toEqual([
      ['1', 'waits'],
      ['2', 'ok'],
      ['1.1', 'ok'],
    ])
    // What waited when the log was read gets its line when it is done; what was done gets none again.
    const outcome = {
      status: 'error',
      content: 'x',
      failure: { kind: 'Failed', message: 'it no longer fits' },
    } as const
    calls.take({ ...ended(5, '1.0', outcome), session: 's', source: { parent: null } })
    expect(calls.done(paint, 79)).toEqual(['  ✗ subagent look · error: it no longer fits #1'])
    const [first] = calls.all
    expect(first && finishedRows(first, paint, 79)).toHaveLength(1)
  })
})
