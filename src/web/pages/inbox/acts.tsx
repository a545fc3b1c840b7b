// The foot of what waits: its fields and buttons, why they are dead, and what went wrong.
import type { ReactNode } from 'react'
import { Text } from '../../parts/text.tsx'

export type ActsProps = {
  readonly trouble: string | null
  /** Why the token may not. */
  readonly refusal: string | null
  readonly children: ReactNode
}

export function Acts({ trouble, refusal, children }: ActsProps) {
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
