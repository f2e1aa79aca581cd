import {
  Blocks,
  Braces,
  BrainCircuit,
  Database,
  FileText,
  Link2,
  type LucideIcon,
  Sparkles,
  Wrench,
} from "lucide-react";

const TYPES: Record<string, { icon: LucideIcon; label: string }> = {
  llm: { icon: Sparkles, label: "Model" },
  chain: { icon: Link2, label: "Chain" },
  tool: { icon: Wrench, label: "Tool" },
  retriever: { icon: Database, label: "Retriever" },
  embedding: { icon: BrainCircuit, label: "Embedding" },
  prompt: { icon: FileText, label: "Prompt" },
  parser: { icon: Braces, label: "Parser" },
};

export const RUN_TYPES = Object.keys(TYPES);

/** Returns the label of a run type. The label of an unknown type is the type itself. */
export const labelOfType = (run_type: string): string => TYPES[run_type]?.label ?? run_type;

export function RunTypeIcon({ run_type }: { run_type: string }) {
  const Icon = TYPES[run_type]?.icon ?? Blocks;
  const label = labelOfType(run_type);
  return (
    <span className="inline-flex shrink-0 text-text-2" title={label}>
      <Icon size={14} aria-hidden />
      <span className="sr-only">{label}</span>
    </span>
  );
}
