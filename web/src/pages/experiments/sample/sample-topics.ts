/** A support topic with its correct answer. */
export interface Topic {
  /** Completes the question "How do I …?". */
  goal: string;
  answer: string;
  /** Part of the answer that makes the answer correct. */
  fact: string;
  /** Replaces the fact in a wrong answer. */
  wrong: string;
  short: string;
}

const topic = (goal: string, answer: string, fact: string, wrong: string, short: string): Topic => ({
  goal,
  answer,
  fact,
  wrong,
  short,
});

export const TOPICS: readonly Topic[] = [
  topic(
    "reset my password",
    "Open the sign-in page, choose Forgot password and follow the link in the e-mail within 30 minutes.",
    "Forgot password",
    "Create account",
    "Use Forgot password when you sign in.",
  ),
  topic(
    "get a refund",
    "Open the order, choose Return and we pay the money back within 5 working days of its arrival.",
    "5 working days",
    "30 working days",
    "Return the order; money comes back in 5 working days.",
  ),
  topic(
    "change my delivery address",
    "You can change the address under Orders until the parcel is packed, which is shown as In preparation.",
    "until the parcel is packed",
    "until the parcel is delivered",
    "Under Orders, until the parcel is packed.",
  ),
  topic(
    "track my parcel",
    "The e-mail that says it was sent has a tracking link, which is live from the next morning on.",
    "tracking link",
    "telephone number",
    "By the tracking link in the e-mail.",
  ),
  topic(
    "cancel my subscription",
    "Go to Billing, choose Cancel plan and it ends with the month that is paid; your data stay for 90 days.",
    "Cancel plan",
    "Delete account",
    "Billing, then Cancel plan.",
  ),
  topic(
    "download an invoice",
    "All invoices are under Billing, then History; each one can be saved as a PDF from its row.",
    "Billing, then History",
    "Profile, then Documents",
    "Look under Billing, then History.",
  ),
  topic(
    "add a colleague to my team",
    "An owner invites them by e-mail under Team, and the new seat is charged from that day on.",
    "invites them by e-mail under Team",
    "sends them the password of the team",
    "An owner invites them by e-mail under Team.",
  ),
  topic(
    "turn on two-factor sign-in",
    "Under Security choose Authenticator app, scan the code and keep the recovery codes in a safe place.",
    "Authenticator app",
    "Text message",
    "Security, then Authenticator app.",
  ),
  topic(
    "use a voucher",
    "Enter the voucher's code at checkout below the total; one voucher can be used for each order.",
    "at checkout",
    "in your profile",
    "Enter its code at checkout.",
  ),
  topic(
    "pay by invoice",
    "Companies can pay by invoice after the first three orders; ask for it under Billing with your tax number.",
    "after the first three orders",
    "from the first order on",
    "Possible after the first three orders.",
  ),
  topic(
    "export my data",
    "Under Privacy choose Export and we send you a link to a ZIP file within 24 hours.",
    "within 24 hours",
    "within 14 days",
    "Privacy, then Export: a link comes within 24 hours.",
  ),
  topic(
    "return a damaged item",
    "Send us a picture of the damage within 14 days and we send a new one before you return the old one.",
    "within 14 days",
    "within 2 days",
    "Send a picture within 14 days.",
  ),
  topic(
    "change the language of the app",
    "The app follows the language of your phone; in the browser you choose it at the bottom of every page.",
    "at the bottom of every page",
    "in the language shop",
    "Choose it at the bottom of every page.",
  ),
  topic(
    "stop the newsletter",
    "Every newsletter has an Unsubscribe link at its end, which takes effect at once and needs no sign-in.",
    "Unsubscribe link",
    "reply address",
    "By the Unsubscribe link at its end.",
  ),
  topic(
    "upgrade to the Pro plan",
    "Choose Pro under Billing; you pay only for the days that are left of the month.",
    "only for the days that are left",
    "again for the whole month",
    "Under Billing; you pay only for the days that are left.",
  ),
  topic(
    "find the warranty of my device",
    "All devices have a warranty of 3 years from the day of delivery; the order's number is enough to claim it.",
    "3 years",
    "6 months",
    "It is 3 years from delivery.",
  ),
  topic(
    "connect my calendar",
    "Under Integrations choose Calendar, sign in there and pick which of your calendars may be read.",
    "Under Integrations",
    "Under Notifications",
    "Under Integrations choose Calendar.",
  ),
  topic(
    "pick up my order in a shop",
    "Choose Pick up at checkout; we keep the order for 7 days and you show the code from the e-mail.",
    "for 7 days",
    "for 1 day",
    "Pick up is open for 7 days.",
  ),
  topic(
    "report a bug",
    "Use Help, then Report a problem, from the page where it happens, as it attaches what we need to know.",
    "Report a problem",
    "Contact sales",
    "Help, then Report a problem.",
  ),
  topic(
    "delete my account",
    "Under Privacy, choose Delete account and confirm by e-mail; after 30 days nothing can be recovered.",
    "after 30 days",
    "after 3 years",
    "Privacy, then Delete account; final after 30 days.",
  ),
];

/** Question templates. `…` is replaced with the topic's goal. */
export const PHRASES: readonly string[] = [
  "How do I …?",
  "Can you explain how to …?",
  "I want to …. What do I have to do?",
  "Where can I …?",
  "Help! I have been trying to … for an hour.",
  "Is there a way to … on my phone?",
  "My colleague says that I cannot …. Is that so?",
  "What is the quickest way to …?",
  "I am new here and would like to ….",
  "Please explain step by step how to ….",
];
