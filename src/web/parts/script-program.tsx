// The program of a cell of a script, whole and line by line. Below each line is what it has called, how that ended, what
// it cost, and what waits.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { lineCallsText, type LineCalls, type ScriptLine } from '../../view/script-cell.ts'
import { readScriptCell } from '../data/other-logs.ts'
import { Button } from './button.tsx'
import { Text } from './exact-text.tsx'

const LINES = 1_000
/** As long as a program may be: no line of it is cut. */
const CHARS = 65_536
const LOOK_MS = 2_000

type ScriptProgramProps = {
  readonly program: string
  /** The session of the cell, once it has begun. */
  readonly cell?: string | null
  readonly isOver?: boolean
}

export function ScriptProgram({ program, cell = null, isOver = true }: ScriptProgramProps) {
  const [shown, setShown] = useState(LINES)
  const { data } = useQuery({
    queryKey: ['cell', cell, isOver],
    queryFn: ({ signal }) => readScriptCell(cell ?? '', signal),
    enabled: cell !== null,
    refetchInterval: isOver ? false : LOOK_MS,
  })
  const { lines = plainLines(program), others = [], now = null, error = null } = data ?? {}
  const below = (calls: readonly LineCalls[]) =>
    calls.map((each) => <CallsOfLine key={`${each.tool} ${each.state}`} cell={cell ?? ''} calls={each} />)
  return (
    <div className="diff mono" tabIndex={0} role="region" aria-label="program">
      {lines.slice(0, shown).map(({ line, text, calls }) => (
        <div key={line} className={now === line ? 'diff-line hunk' : 'diff-line'} aria-current={now === line}>
          <span className="diff-mark program-line">{line}</span>
          <div>
            <Text as="block" mono text={text} head={CHARS} />
            {below(calls)}
            {error?.line === line ? <Text text={`${error.kind}: ${error.message}`} /> : null}
          </div>
        </div>
      ))}
      {lines.length > shown ? (
        <Button size="small" onPress={() => setShown(lines.length)}>
          {lines.length - shown} more lines
        </Button>
      ) : null}
      {below(others)}
      {error && error.line === null ? <Text text={`${error.kind}: ${error.message}`} /> : null}
    </div>
  )
}

function plainLines(program: string): readonly ScriptLine[] {
  return program.split('\n').map((text, i) => ({ line: i + 1, text, calls: [] }))
}

/** It leads to the call, and if that waits for a person to the place where it is decided. */
function CallsOfLine({ cell, calls }: { readonly cell: string; readonly calls: LineCalls }) {
  const { state, first } = calls
  const session = encodeURIComponent(cell)
  const to = state === 'asked' ? `/inbox?session=${session}&call=${first}` : `/s/${session}?e=${first}`
  return (
    <div className="small">
      <Link href={to}>
        <Text text={lineCallsText(calls)} />
      </Link>
    </div>
  )
}
