// What came of a call, as people read it. Pure; the terminal shows it in terminal-outcome.long.test.ts.
import { describe, expect, it } from 'vitest'
import {
  ChatCalls,
  finishedRows,
  foldedLine,
  isWhole,
  printedTexts,
  unfoldCall,
} from '../../src/cli/chat/chat-calls.ts'
import { eventLineWriter } from '../../src/cli/present/event-line.ts'
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

describe('a call of the chat', () => {
  const at = (seq: number, ms: number) => ({ at: ms, epoch: 1, seq, session: 's', source: { parent: null } })
  const calls = (tool: string, args: Json): ChatCalls => {
    const all = new ChatCalls()
    const call = { id: 'c', tool, args, effect: 'once', timeoutMs: 1 } as const
    all.take({ ...at(1, 0), type: 'agent.message', parts: [], calls: [call], verdict: { type: 'continue' } })
    all.take({ ...at(2, 1_000), type: 'agent.tool_use', call: '1.0' })
    return all
  }
  const width = 60

  it('B-CLI-313: a running command shows its time, how much it printed and the last five lines', () => {
    const all = calls('bash', { command: 'npm test' })
    for (let i = 1; i <= 18; i += 1) all.hear({ session: 's', call: '1.0', line: `tick \u001b[2J${i}` }, 'process')
    all.hear({ session: 's', call: '1.0', line: 'tick again' }, 'stream')
    expect(all.moving(paint, width, '⠙', { now: 5_000 })).toEqual(['  ⠙ bash npm test · 4.0 s · 18 lines #1'])
    expect(all.running(width)).toEqual([14, 15, 16, 17, 18].map((i) => `    tick \\u{1b}[2J${i}`))
  })

  it('B-CLI-312: an ended call has its outcome and time, in the chat and in a line of the log', () => {
    const all = calls('bash', { command: 'npm test' })
    const result = ran(numbers(28), '', { exit_code: 3 })
    all.take({ ...at(3, 4_300), type: 'agent.tool_result', call: '1.0', ...result })
    expect(all.done(paint, width).slice(0, 2)).toEqual([
      '  ✗ bash npm test · exit 3 · 28 lines · 3.3 s #1',
      '    ┊ 22 lines before these (Ctrl-O)',
    ])
    const line = eventLineWriter()
    const call = { id: 'c', tool: 'bash', args: { command: 'npm test' }, effect: 'once', timeoutMs: 1 } as const
    const event = { at: 0, epoch: 1, seq: 1, type: 'agent.message', parts: [], calls: [call] } as const
    line({ ...event, verdict: { type: 'continue' } })
    line({ ...at(2, 1_000), type: 'agent.tool_use', call: '1.0' })
    expect(line({ ...at(3, 4_300), type: 'agent.tool_result', call: '1.0', ...result })).toContain(
      '1.0 ✗ bash npm test · exit 3 · 28 lines · 3.3 s  n28',
    )
  })

  it('B-CLI-314: a change that nobody was asked about is shown, with the words that differ', () => {
    const diff =
      '--- a.js\n+++ a.js\n@@ -1,2 +1,2 @@\n-for (let i = 0; i <= n; i++)\n+for (let i = 0; i < n; i++)\n same'
    const done = (isShown: boolean, drawn = paint): readonly string[] => {
      const all = calls('edit', { path: 'a.js' })
      const call = all.at('s', '1.0')
      if (call) call.isShown = isShown
      all.take({
        ...at(3, 1_000),
        type: 'agent.tool_result',
        call: '1.0',
        status: 'ok',
        content: '',
        metadata: { diff },
      })
      return all.done(drawn, width)
    }
    expect(done(false)).toEqual([
      '  ✓ edit a.js · +1 −1 · 0.0 s #1',
      '  │ @@ -1,2 +1,2 @@',
      '  │ -for (let i = 0; i [<=] n; i++)',
      '  │ +for (let i = 0; i [<] n; i++)',
      '  │  same',
    ])
    expect(done(false, createPaint(true)).join('\n')).toContain('\u001b[1m\u001b[31m<=\u001b[0m\u001b[0m')
    expect(done(true)).toHaveLength(1)
  })

  it('B-CLI-317: all of the last calls is there as rows', () => {
    const all = calls('bash', { command: 'npm test' })
    all.take({
      ...at(3, 4_300),
      type: 'agent.tool_result',
      call: '1.0',
      ...ran(numbers(28), 'e\u001b[2J\n', { exit_code: 3 }),
    })
    const [call] = all.all
    const rows = call
      ? unfoldCall(call, printedTexts(call), { columns: width, rows: Number.POSITIVE_INFINITY }).rows
      : []
    const text = rows.flatMap(({ texts }) => texts).join('\n')
    expect(text).toMatch(
      /^#1 bash · exit 3 · 29 lines\n[\s\S]*npm test\n[\s\S]*│ n1\n[\s\S]*│ n28\n[\s\S]*│ e\\u\{1b\}\[2J$/,
    )
    expect(call && isWhole(call)).toBe(true)
  })
})
