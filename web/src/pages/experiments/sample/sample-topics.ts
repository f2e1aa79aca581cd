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
    "On the sign-in page, choose Forgot password and open the link in the e-mail within 30 minutes.",
    "Forgot password",
    "Create account",
    "Use Forgot password when you sign in.",
  ),
  topic(
    "get a refund",
    "Open the order and choose Return. We issue the refund within 5 working days of receiving the item.",
    "5 working days",
    "30 working days",
    "Return the order. The refund arrives in 5 working days.",
  ),
  topic(
    "change my delivery address",
    "You can change the address under Orders until the parcel is packed. Until then, its status is Preparing.",
    "until the parcel is packed",
    "until the parcel is delivered",
    "Under Orders, until the parcel is packed.",
  ),
  topic(
    "track my parcel",
    "The shipping confirmation e-mail contains a tracking link, which is active from the morning after the parcel was sent.",
    "tracking link",
    "telephone number",
    "Use the tracking link in the e-mail.",
  ),
  topic(
    "cancel my subscription",
    "Go to Billing and choose Cancel plan. The plan ends with the paid month; we keep your data for 90 days.",
    "Cancel plan",
    "Delete account",
    "Billing, then Cancel plan.",
  ),
  topic(
    "download an invoice",
    "All invoices are under Billing, then History. You can download each invoice as a PDF from its row.",
    "Billing, then History",
    "Profile, then Documents",
    "Look under Billing, then History.",
  ),
  topic(
    "add a colleague to my team",
    "An owner invites them by e-mail under Team. The new seat is charged from the day they join.",
    "invites them by e-mail under Team",
    "sends them the team password",
    "An owner invites them by e-mail under Team.",
  ),
  topic(
    "turn on two-factor sign-in",
    "Under Security, choose Authenticator app, scan the code and keep the recovery codes in a safe place.",
    "Authenticator app",
    "Text message",
    "Security, then Authenticator app.",
  ),
  topic(
    "use a voucher",
    "Enter the voucher code at checkout, below the total. You can use only one voucher per order.",
    "at checkout",
    "in your profile",
    "Enter the code at checkout.",
  ),
  topic(
    "pay by invoice",
    "Companies can pay by invoice after the first three orders. Request this option under Billing with your tax number.",
    "after the first three orders",
    "from the first order",
    "Possible after the first three orders.",
  ),
  topic(
    "export my data",
    "Under Privacy, choose Export. We will send you a link to a ZIP file within 24 hours.",
    "within 24 hours",
    "within 14 days",
    "Privacy, then Export. The link arrives within 24 hours.",
  ),
  topic(
    "return a damaged item",
    "Send us a photo of the damage within 14 days. We send a replacement before you have to return the damaged item.",
    "within 14 days",
    "within 2 days",
    "Send a photo within 14 days.",
  ),
  topic(
    "change the language of the app",
    "The app uses your phone's language. In the browser, you can change it at the bottom of every page.",
    "at the bottom of every page",
    "in the account settings",
    "Change it at the bottom of every page.",
  ),
  topic(
    "stop the newsletter",
    "Every newsletter has an Unsubscribe link at the bottom. It takes effect immediately and does not require signing in.",
    "Unsubscribe link",
    "reply address",
    "Use the Unsubscribe link at the bottom.",
  ),
  topic(
    "upgrade to the Pro plan",
    "Choose Pro under Billing. You pay only for the remaining days of the month.",
    "only for the remaining days",
    "again for the whole month",
    "Under Billing. You pay only for the remaining days.",
  ),
  topic(
    "find the warranty of my device",
    "All devices have a warranty of 3 years from the day of delivery. To claim it, you need only the order number.",
    "3 years",
    "6 months",
    "It is 3 years from delivery.",
  ),
  topic(
    "connect my calendar",
    "Under Integrations, choose Calendar, sign in and then select which of your calendars we may read.",
    "Under Integrations",
    "Under Notifications",
    "Under Integrations, choose Calendar.",
  ),
  topic(
    "pick up my order in a shop",
    "At checkout, choose Pick up. We keep the order for 7 days. Bring the code from the e-mail with you.",
    "for 7 days",
    "for 1 day",
    "We keep the order for 7 days.",
  ),
  topic(
    "report a bug",
    "On the page where the bug occurs, choose Help, then Report a problem. The report includes all the technical details.",
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
  "My colleague says that I cannot …. Is that true?",
  "What is the quickest way to …?",
  "I am new here and would like to ….",
  "Please explain step by step how to ….",
];

/** Sentences with which polite answers begin and end. */
export const OPENINGS: readonly string[] = [
  "Thank you for your question.",
  "I am happy to help you with that.",
  "Good question!",
  "Let me explain how this works.",
  "Of course.",
];
export const CLOSINGS: readonly string[] = [
  "Is there anything else that I can do for you?",
  "Please write to us again if that does not work.",
  "I hope that this helps.",
  "Have a nice day!",
];
