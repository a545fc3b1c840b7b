// Allows or denies one call, bound to the digest of exactly what is shown. It has no keyboard shortcut: the button must
// have the focus.
import { useState } from 'react'
import type { WirePending } from '../../../server/wire.ts'
import { apiActions } from '../../data/api.ts'
import { useRefusal } from '../../data/use-refusal.ts'
import { useMe } from '../../data/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CommandText } from '../../parts/page-states.tsx'
import { type ActionProps, useAction } from './use-action.ts'
import { ActionFooter } from './action-footer.tsx'
import { shellCommand } from '../../../view/shell-command.ts'
import { ArgumentEditor, useArgumentEdit } from './argument-editor.tsx'

const ANY_ROLE = '*'
const WHY_CHARS_MAX = 4_096

type ApprovalFormProps = ActionProps & {
  /** Called when the arguments become edited or unedited. */
  readonly onEdit: (isEdited: boolean) => void
}

export function ApprovalForm(props: ApprovalFormProps) {
  const { pending, onEdit } = props
  const { callId, sessionId, digest, tool, n = 1, votes = [] } = pending
  const edit = useArgumentEdit(pending.args, onEdit)
  const [why, setWhy] = useState('')
  const { busy, trouble, act } = useAction(props)
  const refusal = useWhyNotDecide(pending, edit.args !== null)
  if (digest === undefined)
    return (
      <footer className="decision">
        <p>This call has no digest, so it cannot be decided in a page. In a terminal:</p>
        <CommandText text={shellCommand`terret approve ${sessionId} ${callId}`} />
      </footer>
    )
  const decide = (allow: boolean): void => {
    const more = {
      ...(why.trim() === '' ? {} : { why: why.trim() }),
      ...(allow && edit.args ? { args: edit.args } : {}),
    }
    const body = { callId, sessionId, allow, digest, ...more }
    const isLast = n <= (edit.args ? 1 : votes.length + 1)
    const done = !allow
      ? `Denied: ${tool}`
      : `${isLast ? 'Allowed' : 'Your yes is counted'}${edit.args ? ' with your arguments' : ''}: ${tool}`
    void act({ body, send: (sent, key) => apiActions.decide(sessionId, sent, key), done })
  }
  const isDead = busy || refusal !== null
  return (
    <ActionFooter trouble={trouble} refusal={refusal}>
      <label className="decision-why">
        Why
        <input
          className="field"
          value={why}
          maxLength={WHY_CHARS_MAX}
          placeholder="Optional. The model is told when you deny."
          onChange={(event) => setWhy(event.target.value)}
        />
      </label>
      {edit.isOpen ? <ArgumentEditor edit={edit} asked={pending.args} /> : null}
      <div className="decision-acts">
        {edit.isOffered ? (
          <Button disabled={isDead} onPress={edit.toggle} pressed={edit.isOpen}>
            {edit.isOpen ? 'Do not edit' : 'Edit'}
          </Button>
        ) : null}
        <Button kind="danger" disabled={isDead} onPress={() => decide(false)}>
          Deny
        </Button>
        <Button kind="primary" disabled={isDead || edit.trouble !== null} onPress={() => decide(true)}>
          {edit.args ? 'Allow with these arguments' : n > 1 ? `Allow (${votes.length + 1} of ${n})` : 'Allow once'}
        </Button>
      </div>
    </ActionFooter>
  )
}

/** Null if this token may decide the call. */
function useWhyNotDecide({ roles = [], votes = [] }: WirePending, isEdited: boolean): string | null {
  const refusal = useRefusal('approver')
  const me = useMe().data
  if (refusal !== null || !me) return refusal
  if (votes.includes(me.name) && !isEdited) return 'You have said yes. Another person must, too.'
  const isOne = roles.length === 0 || me.roles.includes(ANY_ROLE) || roles.some((role) => me.roles.includes(role))
  return isOne ? null : `This is decided by somebody with the role ${roles.join(' or ')}, which your token has not.`
}
