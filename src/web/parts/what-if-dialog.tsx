// Asks what if: lives a session again from an event on, with another model, other instructions, another message, or
// tools that really read. The result is shown beside the original. Nothing is written.
import { type SubmitEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { WhatIfBody, WireTool } from '../../server/wire.ts'
import { apiActions } from '../data/api.ts'
import { useAgents } from '../data/queries.ts'
import { keepWhatIf } from '../data/what-ifs.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { ModelField } from './model-field.tsx'
import { Text } from './exact-text.tsx'
import '../style/compare.css'

export type WhatIfDialogProps = {
  readonly session: string
  /** The name of the session's agent. */
  readonly agent: string
  /** The last event that stays as it was. */
  readonly at: number
  readonly onClose: () => void
}

type ToolMode = 'recorded' | 'live' | 'recorded_or_live'
type Wishes = {
  readonly model: string
  readonly instructions: string
  readonly message: string
  readonly tools: Readonly<Record<string, ToolMode>>
}
const AS_IT_WAS: Wishes = { model: '', instructions: '', message: '', tools: {} }

export function WhatIfDialog({ session, agent, at, onClose }: WhatIfDialogProps) {
  const [wishes, setWishes] = useState(AS_IT_WAS)
  const { ask, busy, trouble } = useWhatIf(session, at, onClose)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (!busy && event.nativeEvent.isTrusted) void ask(wishes)
  }
  return (
    <Dialog title={`What if, from event ${at}…`} onClose={onClose}>
      <form className="fork-form" onSubmit={submit}>
        <p className="dim">
          Everything up to event {at} stays as it was. What follows is lived again beside the session, which is not
          changed. Tools give the results that they gave.
        </p>
        <WhatIfFields agent={agent} wishes={wishes} onChange={setWishes} />
        {trouble === null ? null : (
          <p className="fork-trouble" role="alert">
            <Text text={trouble} />
          </p>
        )}
        <div className="fork-acts">
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={busy} onPress={() => {}}>
            {busy ? 'It is lived…' : 'Show beside the original'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Closing the window ends what was asked. */
function useWhatIf(session: string, at: number, onClose: () => void) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const [, go] = useLocation()
  const gone = useRef(new AbortController())
  useEffect(() => {
    const over = new AbortController()
    gone.current = over
    return () => over.abort()
  }, [])
  const ask = async (wishes: Wishes): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    const { signal } = gone.current
    try {
      const name = keepWhatIf(await apiActions.whatIf(session, bodyOf(at, wishes), signal))
      if (signal.aborted) return
      onClose()
      go(`/compare?a=${encodeURIComponent(session)}&whatif=${name}`)
    } catch (error) {
      if (signal.aborted) return
      setTrouble(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  return { ask, busy, trouble }
}

function bodyOf(at: number, { model, instructions, message, tools }: Wishes): WhatIfBody {
  return {
    at,
    ...(model.trim() === '' ? {} : { model: model.trim() }),
    ...(instructions.trim() === '' ? {} : { instructions }),
    ...(message.trim() === '' ? {} : { message }),
    ...(Object.keys(tools).length === 0 ? {} : { tools }),
  }
}

type FieldsProps = { readonly agent: string; readonly wishes: Wishes; readonly onChange: (next: Wishes) => void }

function WhatIfFields({ agent, wishes, onChange }: FieldsProps) {
  const agents = useAgents().data?.agents ?? []
  const own = agents.find(({ name }) => name === agent)
  return (
    <>
      <ModelField
        value={wishes.model}
        placeholder="none: the recording answers"
        onChange={(model) => onChange({ ...wishes, model })}
      />
      <label>
        Instructions (empty: as they are)
        <textarea
          className="field"
          rows={4}
          value={wishes.instructions}
          onChange={({ target }) => onChange({ ...wishes, instructions: target.value })}
        />
      </label>
      <label>
        Message in place of what people said after it (empty: what they said)
        <textarea
          className="field"
          rows={2}
          value={wishes.message}
          onChange={({ target }) => onChange({ ...wishes, message: target.value })}
        />
      </label>
      <ToolFields tools={own?.tools.filter(mayRun) ?? []} wishes={wishes} onChange={onChange} />
    </>
  )
}

/** No page can make a tool run that changes something. */
function mayRun({ effect, outside }: WireTool): boolean {
  return effect === 'read' && !outside
}

const MODES: readonly (readonly [ToolMode, string])[] = [
  ['recorded', 'gives what it gave'],
  ['recorded_or_live', 'runs for other arguments'],
  ['live', 'runs'],
]

function ToolFields({ tools, wishes, onChange }: Omit<FieldsProps, 'agent'> & { readonly tools: readonly WireTool[] }) {
  if (tools.length === 0) return null
  const choose = (name: string, mode: ToolMode): void => {
    const { [name]: _was, ...others } = wishes.tools
    onChange({ ...wishes, tools: mode === 'recorded' ? others : { ...others, [name]: mode } })
  }
  return (
    <fieldset className="what-if-tools">
      <legend>Tools that read. All others give what they gave.</legend>
      {tools.map(({ name }) => (
        <label key={name}>
          <span className="mono">
            <Text text={name} />
          </span>
          <select
            className="field"
            value={wishes.tools[name] ?? 'recorded'}
            onChange={({ target }) => choose(name, target.value as ToolMode)}
          >
            {MODES.map(([mode, says]) => (
              <option key={mode} value={mode}>
                {says}
              </option>
            ))}
          </select>
        </label>
      ))}
    </fieldset>
  )
}
