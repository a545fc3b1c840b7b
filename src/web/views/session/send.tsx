// Says something to a session. The same text sent twice, as after a lost answer, is one message.
import { type SubmitEvent, useRef, useState } from 'react'
import { acts, newKey } from '../../data/api.ts'
import { Button } from '../../parts/button.tsx'
import { Choice } from '../../parts/choice.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Text } from '../../parts/text.tsx'
import { toast } from '../../shell/toasts.tsx'

const WHEN = ['next', 'after', 'now', 'steer'] as const
type When = (typeof WHEN)[number]

const SAYS: Readonly<Record<When, string>> = {
  next: 'It is read with the next request of the run.',
  after: 'It opens a run of its own when this one is over.',
  now: 'What the model says now is dropped, and it is asked again with this.',
  steer: 'It tells the agent to go another way: what it does now is stopped.',
}

/** `works`: a run is open. Otherwise a message just opens one. */
export function SendDialog({
  session,
  works,
  onClose,
}: {
  readonly session: string
  readonly works: boolean
  readonly onClose: () => void
}) {
  const [text, setText] = useState('')
  const [when, setWhen] = useState<When>('next')
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const key = useRef(newKey())
  const send = async (): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    try {
      if (works && when === 'steer')
        await acts.commands(session, { commands: [{ type: 'redirect', text }] }, key.current)
      else await acts.send(session, { input: text, ...(works && when !== 'steer' ? { when } : {}) }, key.current)
      toast('It is sent.')
      onClose()
    } catch (error) {
      setTrouble(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (event.nativeEvent.isTrusted && text.trim() !== '' && !busy) void send()
  }
  return (
    <Dialog title="Send a message" onClose={onClose}>
      <form onSubmit={onSubmit} className="send">
        <label>
          <span className="out-of-sight">Message</span>
          <textarea
            className="field"
            rows={6}
            value={text}
            autoFocus
            placeholder="What should it know or do?"
            onChange={(event) => {
              setText(event.target.value)
              key.current = newKey()
            }}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
            }}
          />
        </label>
        {works ? (
          <>
            <Choice name="When" value={when} options={WHEN} onChange={setWhen} />
            <p className="dim small">{SAYS[when]}</p>
          </>
        ) : null}
        {trouble === null ? null : (
          <p className="status bad" role="alert">
            <Text text={trouble} />
          </p>
        )}
        <Acts disabled={text.trim() === '' || busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}

function Acts({ disabled, onClose }: { readonly disabled: boolean; readonly onClose: () => void }) {
  return (
    <div className="dialog-acts">
      <span className="dim small spread">Ctrl Enter sends</span>
      <Button onPress={onClose}>Cancel</Button>
      <Button kind="primary" type="submit" disabled={disabled} onPress={() => {}}>
        Send
      </Button>
    </div>
  )
}
