// The footer of a pending call: its fields and buttons, why they are disabled, and errors.
import type { ReactNode } from 'react'
import { Text } from '../../parts/exact-text.tsx'

export type ActionFooterProps = {
  readonly trouble: string | null
  /** Why the token may not decide. */
  readonly refusal: string | null
  readonly children: ReactNode
}

export function ActionFooter({ trouble, refusal, children }: ActionFooterProps) {
  return (
    <footer className="decision">
      {trouble === null ? null : (
        <p className="form-trouble" role="alert">
          <Text text={trouble} />
        </p>
      )}
      {children}
      {refusal === null ? null : (
        <p className="decision-refusal">
          <Text text={refusal} />
        </p>
      )}
    </footer>
  )
}
