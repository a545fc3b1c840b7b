// Sends a message to a session. A retry of the same text, as after a lost answer, is one message.
import { type SubmitEvent, useRef, useState } from 'react'
import { apiActions, newKey } from '../../data/api.ts'
import { Button } from '../../parts/button.tsx'
import { ChoiceField } from '../../parts/choice-field.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { showToast } from '../../shell/toasts.tsx'

const WHEN = ['next', 'after', 'now', 'steer'] as const
type SendTime = (typeof WHEN)[number]

const SAYS: Readonly<Record<SendTime, string>> = {
  next: 'It is read with the next request of the run.',
  after: 'It opens a run of its own when this one is over.',
  now: 'What the model says now is dropped, and it is asked again with this.',
  steer: 'It tells the agent to go another way: what it does now is stopped.',
}

/** `works`: a run is open. Otherwise the message opens one. */
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
  const [when, setWhen] = useState<SendTime>('next')
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const key = useRef(newKey())
  const send = async (): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    try {
      if (works && when === 'steer')
        await apiActions.commands(session, { commands: [{ type: 'redirect', text }] }, key.current)
      else await apiActions.send(session, { input: text, ...(works && when !== 'steer' ? { when } : {}) }, key.current)
      showToast('It is sent.')
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
            <ChoiceField name="When" value={when} options={WHEN} onChange={setWhen} />
            <p className="dim small">{SAYS[when]}</p>
          </>
        ) : null}
        {trouble === null ? null : (
          <p className="status bad" role="alert">
            <Text text={trouble} />
          </p>
        )}
        <SendFooter disabled={text.trim() === '' || busy} onClose={onClose} />
      </form>
    </Dialog>
  )
}

function SendFooter({ disabled, onClose }: { readonly disabled: boolean; readonly onClose: () => void }) {
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
